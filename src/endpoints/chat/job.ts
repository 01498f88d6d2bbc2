import type { Deployment, Model } from '../../core/catalog.ts'
import { ApiError } from '../../core/errors.ts'
import { expectedCount, TEMPLATE_TOKENS } from '../../core/expected-count.ts'
import { forwardBody } from '../../core/json/forward.ts'
import type { Job } from '../../core/job.ts'
import { HEADROOM, type JsonBody } from '../../core/json/json-body.ts'
import { CHAT_TEMPLATE_TOKENS, mostInputTokens } from '../../core/money/usage-bounds.ts'
import type { WaitingWork } from '../../core/sliced-work.ts'
import { imageTokens, sumOf } from '../../core/token-estimate.ts'
import { chatAnswer } from './answer.ts'
import { checkMessages, type ImageParts } from './messages.ts'
import { chatPrompt } from './prompt.ts'
import { chatRequestSchema, type ChatRequest } from './schema.ts'
import { jsonRequest, operationOf, supportOf } from '../engine-operation.ts'
import { SPLIT_PARAMETERS, splitCalls, withExplanation } from '../generation-calls.ts'
import { allowedOutputTokens } from '../output-limit.ts'
import { invalidParameter, requireValid } from '../../core/parameter-errors.ts'
import { parameterTokens, requireSmallParameters } from '../parameter-tokens.ts'
import { acceptedParameters, forwardedParameters } from '../parameters.ts'

const CHAT_PATH = '/chat/completions'
const required = new Set(['messages'])

/** POST /chat/completions: checks the request and makes it a job. */
export function* chatJob(body: JsonBody, model: Model, deployment: Deployment, images: ImageParts): WaitingWork<Job> {
  const dialect = operationOf(model, deployment, 'chat')
  requireValid(chatRequestSchema, body.value)
  yield
  const request = body.value as ChatRequest
  requireConsistent(request)
  const support = supportOf(deployment, 'chat')
  const accepted = acceptedParameters(request, chatRequestSchema.properties, required, model, support)
  const { keeps, translated } = forwardedParameters(request, accepted, support)
  requireSmallParameters(body, accepted)
  const checked = yield* checkMessages(request, model, images)
  const { images: imageCount, rewritten } = checked
  const input = sumOf([checked.input, parameterTokens(body, accepted, model.tokenizer)])
  const guess = imageTokens(imageCount)
  const choices = request.n ?? 1
  const maxTokens = allowedOutputTokens(model, {
    name: request.max_completion_tokens ? 'max_completion_tokens' : 'max_tokens',
    requested: request.max_completion_tokens ?? request.max_tokens ?? undefined,
    fallback: model.defaultMaxTokens,
    // How many tokens an image takes, only the model knows. The high guess may be more than all of its context.
    input: { likely: input.likely, charged: input.charged - guess.charged + guess.likely },
    inputName: 'messages',
  })
  const prompt = yield* chatPrompt(body, deployment)
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
  const plain = jsonRequest(dialect.path, sent, 'messages')
  const shared = request.stream && dialect.hidesRefusalsOfStreams ? withExplanation(plain) : plain
  return {
    endpoint: CHAT_PATH,
    model,
    deployment,
    // The model cannot read more than its context, even if the estimate is higher.
    cost: Math.min(input.charged, model.contextLength) + maxTokens * choices,
    maxTokens: maxTokens * choices,
    // The tokens of an image depend on its size in pixels, not in bytes.
    maxInputTokens: imageCount > 0 ? model.contextLength : mostTextTokens(sent, model),
    likelyInputTokens: input.likely,
    // A template may leave the parameters out, so only the messages count for the least.
    expectedInput:
      imageCount > 0
        ? undefined
        : expectedCount({ charged: input.charged, likely: checked.input.likely }, 1, TEMPLATE_TOKENS),
    prompt,
    calls: isSplit ? yield* splitCalls({ shared, choices, seed: request.seed ?? undefined }) : [shared],
    answer: chatAnswer(request.stream === true, {
      limit: { maxTokens, choices, generated: choices, tokenizer: model.tokenizer },
      includeUsage: request.stream_options?.include_usage === true,
      oneChoicePerCall: dialect.oneChoicePerCall,
      usageOf: dialect.usageOf,
    }),
  }
}

function mostTextTokens(sent: Buffer, { contextLength }: Model): number {
  return mostInputTokens({ bytes: sent.length, contexts: 1, addedTokens: CHAT_TEMPLATE_TOKENS }, contextLength)
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
