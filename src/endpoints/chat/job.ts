import type { Deployment, Model } from '../../core/catalog.ts'
import { ApiError } from '../../core/errors.ts'
import { expectedCount, TEMPLATE_TOKENS } from '../../core/expected-count.ts'
import { forwardBody } from '../../core/json/forward.ts'
import type { Job } from '../../core/job.ts'
import { HEADROOM, type JsonBody } from '../../core/json/json-body.ts'
import { CHAT_TEMPLATE_TOKENS, inputBounds } from '../../core/money/usage-bounds.ts'
import type { WaitingWork } from '../../core/sliced-work.ts'
import { imageTokens, sumOf, type TokenEstimate } from '../../core/token-estimate.ts'
import { withoutChangingLines } from './changing-lines.ts'
import { chatAnswer, translatedAnswer } from './answer.ts'
import type { ChatForm } from './form.ts'
import { checkMessages, type CheckedMessages, type ImageParts } from './messages.ts'
import { chatPrompt } from './prompt.ts'
import { chatRequestSchema, type ChatRequest } from './schema.ts'
import { jsonRequest, operationOf, supportOf } from '../engine-operation.ts'
import type { GenerationOptions } from '../generation-options.ts'
import { SPLIT_PARAMETERS, splitCalls, withExplanation } from '../generation-calls.ts'
import { allowedOutputTokens } from '../output-limit.ts'
import { invalidParameter, requireValid } from '../../core/parameter-errors.ts'
import { parameterTokens, requireSmallParameters } from '../parameter-tokens.ts'
import { acceptedParameters, forwardedParameters } from '../parameters.ts'
import type { SupportByName } from '../../dialects/parameter-support.ts'

export interface ChatParts extends ImageParts {
  /** How the lines of system messages start that change from request to request. */
  readonly changingLines: readonly string[]
}

const CHAT_PATH = '/chat/completions'
const required = new Set(['messages'])

/** POST /chat/completions: checks the request and makes it a job. Other APIs are answered in their own form. */
export function* chatJob(
  body: JsonBody,
  model: Model,
  deployment: Deployment,
  parts: ChatParts,
  form?: ChatForm,
): WaitingWork<Job> {
  const dialect = operationOf(model, deployment, 'chat')
  const { request, accepted, support, messages, input } = yield* checkedChat(body, model, deployment, parts)
  const { keeps, translated } = forwardedParameters(request, accepted, support)
  const { images: imageCount, rewritten } = messages
  const guess = imageTokens(imageCount)
  const inputName = form?.names.input ?? 'messages'
  const choices = request.n ?? 1
  const maxTokens = allowedOutputTokens(model, {
    name: form?.names.limit ?? (request.max_completion_tokens ? 'max_completion_tokens' : 'max_tokens'),
    requested: request.max_completion_tokens ?? request.max_tokens ?? undefined,
    fallback: model.defaultMaxTokens,
    // How many tokens an image takes, only the model knows. The high guess may be more than all of its context.
    input: { likely: input.likely, charged: input.charged - guess.charged + guess.likely },
    inputName,
  })
  const sentBody = rewritten ? { ...body, value: { ...body.value, messages: rewritten } } : body
  const prompt = yield* chatPrompt(sentBody, deployment)
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
  const sent = yield* forwardBody(body.bytes, HEADROOM, body.scan.fields, keep, fields)
  const options: GenerationOptions = {
    limit: { maxTokens, choices, generated: choices, tokenizer: model.tokenizer },
    includeUsage: request.stream_options?.include_usage === true,
    oneChoicePerCall: dialect.oneChoicePerCall,
    usageOf: dialect.usageOf,
  }
  const plain = jsonRequest(dialect.path, sent, inputName)
  const shared = request.stream && dialect.hidesRefusalsOfStreams ? withExplanation(plain) : plain
  return {
    endpoint: form?.endpoint ?? CHAT_PATH,
    model,
    deployment,
    // The model cannot read more than its context, even if the estimate is higher.
    cost: Math.min(input.charged, model.contextLength) + maxTokens * choices,
    maxTokens: maxTokens * choices,
    // The tokens of an image depend on its size in pixels, not in bytes.
    ...(imageCount > 0 ? wholeContext(model) : textBounds(sent, model)),
    likelyInputTokens: input.likely,
    // A template may leave the parameters out, so only the messages count for the least.
    expectedInput:
      imageCount > 0
        ? undefined
        : expectedCount({ charged: input.charged, likely: messages.input.likely }, 1, TEMPLATE_TOKENS),
    prompt,
    calls: isSplit ? yield* splitCalls({ shared, choices, seed: request.seed ?? undefined }) : [shared],
    answer: form
      ? translatedAnswer(request.stream === true, options, form, input.likely)
      : chatAnswer(request.stream === true, options),
  }
}

/** The tokens of a request's input, as far as they can be told without its engine. */
export function* chatInputTokens(
  body: JsonBody,
  model: Model,
  deployment: Deployment,
  parts: ChatParts,
): WaitingWork<number> {
  operationOf(model, deployment, 'chat')
  const { input } = yield* checkedChat(body, model, deployment, parts)
  return input.likely
}

interface CheckedChat {
  readonly request: ChatRequest
  readonly support: SupportByName
  readonly accepted: ReadonlySet<string>
  readonly messages: CheckedMessages
  readonly input: TokenEstimate
}

function* checkedChat(
  body: JsonBody,
  model: Model,
  deployment: Deployment,
  parts: ChatParts,
): WaitingWork<CheckedChat> {
  requireValid(chatRequestSchema, body.value)
  yield
  const request = body.value as ChatRequest
  requireConsistent(request)
  const support = supportOf(deployment, 'chat')
  const accepted = acceptedParameters(request, chatRequestSchema.properties, required, model, support)
  requireSmallParameters(body, accepted)
  const messages = yield* checkMessages(request, model, parts)
  const moved = yield* withoutChangingLines(messages.rewritten ?? request.messages, parts.changingLines)
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
