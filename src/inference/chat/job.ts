import type { Deployment, Model } from '../../catalog/model.ts'
import { ApiError } from '../../shared/errors.ts'
import { expectedCount, USUAL_TEMPLATE_TOKENS, CHAT_TEMPLATE_TOKENS, inputBounds } from '../metering/usage-bounds.ts'
import { forwardBody, HEADROOM, type JsonBody } from '../../shared/json/json-body.ts'
import type { Job } from '../../engines/job.ts'
import { imageTokens, sumOf, type TokenEstimate } from '../../shared/tokens/token-estimate.ts'
import { withoutChangingLines, chatPrompt } from './prompt.ts'
import { chatAnswer, translatedAnswer } from './answer.ts'
import type { ChatForm } from './form.ts'
import { checkMessages, type CheckedMessages } from './messages.ts'
import { chatRequestSchema, type ChatRequest } from './schema.ts'
import { operationOf, supportOf } from '../request/engine-operation.ts'
import type { GenerationOptions } from '../generation/generation-options.ts'
import { generationCalls, SPLIT_PARAMETERS, type SplitChoices } from '../generation/generation-calls.ts'
import type { OutputLimit } from '../generation/generation-limit.ts'
import {
  allowedOutputTokens,
  parameterTokens,
  requireSmallParameters,
  acceptedParameters,
  forwardedParameters,
  tierOf,
} from '../request/parameters.ts'
import { invalidParameter, requireValid } from '../../shared/json/schema-check.ts'
import type { PreparedRequest, RequestFacts, MissingInput } from '../request/prepared-request.ts'
import type { SupportByName } from '../../engines/dialects/parameter-support.ts'

/** What the job of a chat needs besides its terms and its body. */
export interface ChatPlan {
  readonly isStream: boolean
  readonly limit: OutputLimit
  readonly includeUsage: boolean
  /** Set if the engine generates one choice per call. */
  readonly split: SplitChoices | undefined
}

/** The names that another API uses for a chat. */
export type ChatNames = ChatForm['names']

const CHAT_PATH = '/chat/completions'
const INPUT_NAME = 'messages'
const required = new Set(['messages'])

/**
 * POST /chat/completions: checks the request and builds the body for the engine. Other APIs have names of their own.
 */
export function prepareChat(
  body: JsonBody,
  model: Model,
  deployment: Deployment,
  facts: RequestFacts,
  names?: ChatNames,
): PreparedRequest<ChatPlan> | MissingInput {
  const dialect = operationOf(model, deployment, 'chat')
  const checked = checkedChat(body, model, deployment, facts)
  if ('missing' in checked) return checked
  const { request, accepted, support, messages, input } = checked
  const { keeps, translated } = forwardedParameters(request, accepted, support)
  const { images: imageCount, rewritten } = messages
  const guess = imageTokens(imageCount)
  const choices = request.n ?? 1
  const maxTokens = allowedOutputTokens(model, {
    name: names?.limit ?? (request.max_completion_tokens ? 'max_completion_tokens' : 'max_tokens'),
    requested: request.max_completion_tokens ?? request.max_tokens,
    fallback: model.defaultMaxTokens,
    // Only the model knows how many tokens an image takes. The high estimate may exceed its whole context.
    input: { likely: input.likely, charged: input.charged - guess.charged + guess.likely },
    inputName: names?.input ?? INPUT_NAME,
  })
  const sentBody = rewritten ? { ...body, value: { ...body.value, messages: rewritten } } : body
  const prompt = chatPrompt(sentBody, deployment)
  const fields = {
    model: deployment.engine?.model ?? model.id,
    max_tokens: maxTokens,
    ...(request.stream ? { stream: true, ...dialect.streamFields } : {}),
    ...(rewritten ? { messages: rewritten } : {}),
    ...translated,
  }
  const isSplit = dialect.oneChoicePerCall === true && choices > 1
  const keep = (name: string): boolean =>
    isSplit && SPLIT_PARAMETERS.has(name) ? false : keeps(name) || (name === 'messages' && !rewritten)
  const sent = forwardBody(body.bytes, HEADROOM, body.scan.fields, keep, fields)
  return {
    terms: {
      tier: tierOf(request.service_tier, model),
      // The model cannot read more than its context, even if the estimate is higher.
      cost: Math.min(input.charged, model.contextLength) + maxTokens * choices,
      maxTokens: maxTokens * choices,
      // The tokens of an image depend on its size in pixels, not in bytes.
      ...(imageCount > 0 ? wholeContext(model) : textBounds(sent, model)),
      likelyInputTokens: input.likely,
      // A template may leave the parameters out, so only the messages count towards the minimum.
      expectedInput:
        imageCount > 0
          ? undefined
          : expectedCount({ charged: input.charged, likely: messages.input.likely }, 1, USUAL_TEMPLATE_TOKENS),
      prompt,
    },
    bodies: [sent],
    plan: {
      isStream: request.stream === true,
      limit: { maxTokens, choices, generated: choices, tokenizer: model.tokenizer },
      includeUsage: request.stream_options?.include_usage === true,
      split: isSplit ? { choices, seed: request.seed ?? undefined } : undefined,
    },
  }
}

export function chatJob(prepared: PreparedRequest<ChatPlan>, model: Model, deployment: Deployment): Job {
  return jobInForm(undefined, prepared, model, deployment)
}

/** The job of a chat that came through another API, which is answered in the format of that API. */
export function jobInForm(
  form: ChatForm | undefined,
  { terms, bodies, plan }: PreparedRequest<ChatPlan>,
  model: Model,
  deployment: Deployment,
): Job {
  const dialect = operationOf(model, deployment, 'chat')
  const { isStream, limit, includeUsage, split } = plan
  const options: GenerationOptions = {
    limit,
    includeUsage,
    oneChoicePerCall: dialect.oneChoicePerCall,
    usageOf: dialect.usageOf,
  }
  return {
    ...terms,
    endpoint: form?.endpoint ?? CHAT_PATH,
    model,
    deployment,
    calls: generationCalls(dialect, { bodies, isStream, split, inputName: form?.names.input ?? INPUT_NAME }),
    answer: form ? translatedAnswer(isStream, options, form, terms.likelyInputTokens) : chatAnswer(isStream, options),
  }
}

/** The tokens of a request's input, as far as they can be counted without its engine. */
export function chatInputTokens(
  body: JsonBody,
  model: Model,
  deployment: Deployment,
  facts: RequestFacts,
): InputTokens | MissingInput {
  operationOf(model, deployment, 'chat')
  const checked = checkedChat(body, model, deployment, facts)
  return 'missing' in checked ? checked : { tokens: checked.input.likely }
}

export interface InputTokens {
  readonly tokens: number
}

interface CheckedChat {
  readonly request: ChatRequest
  readonly support: SupportByName
  readonly accepted: ReadonlySet<string>
  readonly messages: CheckedMessages
  readonly input: TokenEstimate
}

function checkedChat(
  body: JsonBody,
  model: Model,
  deployment: Deployment,
  facts: RequestFacts,
): CheckedChat | MissingInput {
  requireValid(chatRequestSchema, body.value)
  const request = body.value as ChatRequest
  requireConsistent(request)
  const support = supportOf(deployment, 'chat')
  const accepted = acceptedParameters(request, chatRequestSchema.properties, required, model, support)
  requireSmallParameters(body, accepted)
  const messages = checkMessages(request, model, facts)
  if ('missing' in messages) return messages
  const moved = withoutChangingLines(messages.rewritten ?? request.messages, facts.changingLines)
  const input = sumOf([messages.input, parameterTokens(body, accepted, model.tokenizer)])
  return { request, support, accepted, messages: moved ? { ...messages, rewritten: moved } : messages, input }
}

type InputBounds = Pick<Job, 'maxInputTokens' | 'heldInputTokens'>

function wholeContext({ contextLength }: Model): InputBounds {
  return { maxInputTokens: contextLength, heldInputTokens: contextLength }
}

function textBounds(sent: Buffer, { contextLength }: Model): InputBounds {
  return inputBounds({ bytes: sent.length, contexts: 1, addedTokens: CHAT_TEMPLATE_TOKENS }, contextLength)
}

/** The rules between parameters, which a schema cannot express. */
function requireConsistent(request: ChatRequest): void {
  if (request.stream_options && !request.stream) {
    throw new ApiError('invalid_value', "'stream_options' is only allowed with stream: true.", {
      param: 'stream_options',
    })
  }
  if (request.top_logprobs && !request.logprobs) {
    throw new ApiError('invalid_value', "'top_logprobs' is only allowed with logprobs: true.", {
      param: 'top_logprobs',
    })
  }
  const { tools, tool_choice: choice } = request
  if (choice === 'required' && !tools?.length) {
    throw new ApiError('invalid_value', "'tool_choice' is only allowed with tools.", { param: 'tool_choice' })
  }
  if (typeof choice === 'object' && choice && !tools?.some((tool) => tool.function.name === choice.function.name)) {
    throw invalidParameter('invalid_value', 'tool_choice.function.name', 'the name of one of the tools')
  }
}
