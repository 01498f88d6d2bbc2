import type { Deployment, Model } from '../core/catalog.ts'
import { ApiError } from '../core/errors.ts'
import { forwardBody } from '../core/forward.ts'
import type { Job } from '../core/job.ts'
import { chargedTokens, likelyTokens, type InputSize } from '../core/token-estimate.ts'
import { chatCompletion } from '../engines/chat-completion.ts'
import { chatStream } from '../engines/chat-stream.ts'
import { HEADROOM, type JsonBody } from './body.ts'
import { readMessages, type FetchImage } from './chat-messages.ts'
import { chatRequestSchema, type ChatRequest } from './chat-schema.ts'
import { acceptedParameters, mistake, requireValid } from './parameters.ts'

const CHAT_PATH = '/chat/completions'
const required = new Set(['messages'])

/** From a caller's body to a job: every rule of CONTRACT for /chat/completions. */
export async function chatJob(
  body: JsonBody,
  model: Model,
  deployment: Deployment,
  fetchImage: FetchImage,
): Promise<Omit<Job, 'price'>> {
  requireValid(chatRequestSchema, body.value)
  const request = body.value as ChatRequest
  requireConsistent(request)
  const accepted = acceptedParameters(request, chatRequestSchema.properties, required, model)
  const { size, rewritten } = await readMessages(request, model, fetchImage)
  const choices = request.n ?? 1
  const maxTokens = outputAllowed(request, model, size)
  const fields = {
    model: deployment.engine?.model ?? model.id,
    max_tokens: maxTokens,
    // Usage is always asked for; running usage is what makes an aborted stream billable.
    ...(request.stream ? { stream: true, stream_options: { include_usage: true, continuous_usage_stats: true } } : {}),
    ...(rewritten ? { messages: rewritten } : {}),
  }
  const keep = (name: string): boolean => accepted.has(name) || (name === 'messages' && !rewritten)
  const includeUsage = request.stream_options?.include_usage === true
  return {
    endpoint: CHAT_PATH,
    model,
    deployment,
    cost: chargedTokens(size) + maxTokens * choices,
    maxTokens: maxTokens * choices,
    likelyInputTokens: likelyTokens(size),
    body: forwardBody(body.bytes, HEADROOM, body.scan.fields, keep, fields),
    answer: request.stream
      ? { kind: 'streamed', relay: (head) => chatStream(head, { includeUsage, choices }) }
      : { kind: 'whole', read: chatCompletion },
  }
}

/** What a schema cannot say: rules between parameters. */
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
    throw mistake('invalid_value', 'tool_choice.function.name', 'the name of one of the tools')
  }
}

/** The output a request may have: asked for, or the model's default as far as the context has room. */
function outputAllowed(request: ChatRequest, model: Model, size: InputSize): number {
  const name = request.max_completion_tokens ? 'max_completion_tokens' : 'max_tokens'
  const asked = request.max_completion_tokens ?? request.max_tokens
  const input = likelyTokens(size)
  if (asked && asked > model.maxCompletionTokens) {
    throw mistake('invalid_value', name, `at most ${model.maxCompletionTokens}, the output limit of ${model.id}`)
  }
  const allowed = asked ?? Math.max(1, Math.min(model.defaultMaxTokens, model.contextLength - input))
  if (input + allowed > model.contextLength) {
    throw new ApiError(
      'context_length_exceeded',
      `This model's maximum context length is ${model.contextLength} tokens, but the request needs about ${input + allowed} (${input} in the messages, ${allowed} in the completion). Shorten the messages or lower ${name}.`,
      { param: 'messages' },
    )
  }
  return allowed
}
