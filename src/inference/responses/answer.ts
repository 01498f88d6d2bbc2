import type { ApiError } from '../../shared/errors.ts'
import type { AnswerHead } from '../../engines/job.ts'
import type { ChatEnding, ChatResult } from '../chat/form.ts'
import { readToolCall } from '../chat/tool-calls.ts'
import type { WireUsage } from '../generation/generation-usage.ts'
import { responsesError } from './errors.ts'
import { callItem, messageItem, reasoningItem, outputTextPart, type ItemStatus, type OutputItem } from './items.ts'
import type { TranslatedResponses } from './request.ts'
import type { OwnTool } from './tools.ts'

/** What the answer needs from the request. */
export type ResponsesAnswerNeeds = Pick<TranslatedResponses, 'tools' | 'settings' | 'sealsReasoning'>

/** The answer of /responses, converted from that of a chat. */
export function wholeResponse(
  head: AnswerHead,
  { message, ending, usage }: ChatResult,
  needs: ResponsesAnswerNeeds,
): object {
  const { content, refusal, reasoning_content: reasoning, tool_calls: calls = [] } = message
  const text = (content ?? '') + (refusal ?? '')
  const isCut = ending.reason === 'length'
  const written: ((id: string, status: ItemStatus) => OutputItem)[] = [
    ...(reasoning === undefined
      ? []
      : [(id: string, status: ItemStatus) => reasoningItem(id, reasoning, status, needs.sealsReasoning)]),
    ...(text ? [(id: string, status: ItemStatus) => messageItem(id, [outputTextPart(text)], status)] : []),
    ...calls.map((call) => (id: string, status: ItemStatus) => toolCall(id, call, needs, status)),
  ]
  const output = written.map((make, index) =>
    make(`${head.id}_${index}`, isCut && index === written.length - 1 ? 'incomplete' : 'completed'),
  )
  return endedResponse(head, needs, output, ending, usage)
}

/** The response while it is in progress, with the fields that it always has. */
export function response(
  head: AnswerHead,
  { settings }: Pick<ResponsesAnswerNeeds, 'settings'>,
  changes: object = {},
): object {
  return {
    id: `resp_${head.id}`,
    object: 'response',
    created_at: head.created,
    status: 'in_progress',
    model: head.model,
    output: [],
    error: null,
    incomplete_details: null,
    usage: null,
    ...settings,
    ...(head.tier && { service_tier: head.tier }),
    ...changes,
  }
}

export function endedResponse(
  head: AnswerHead,
  needs: ResponsesAnswerNeeds,
  output: readonly OutputItem[],
  { reason }: ChatEnding,
  usage: WireUsage,
): object {
  const incomplete = reason === 'length' ? 'max_output_tokens' : reason === 'content_filter' ? reason : undefined
  return response(head, needs, {
    status: incomplete ? 'incomplete' : 'completed',
    output,
    incomplete_details: incomplete ? { reason: incomplete } : null,
    usage: responsesUsage(usage),
  })
}

export function failedResponse(
  head: AnswerHead,
  needs: Pick<ResponsesAnswerNeeds, 'settings'>,
  output: readonly OutputItem[],
  given: ApiError,
): object {
  const { code, message } = responsesError(given)
  return response(head, needs, { status: 'failed', output, error: { code, message } })
}

/** The tool that a model called, under the caller's name for it. */
export function ownTool(name: string, { tools }: Pick<ResponsesAnswerNeeds, 'tools'>): OwnTool {
  return tools.get(name) ?? { kind: 'function', name, namespace: undefined }
}

function toolCall(id: string, call: unknown, needs: ResponsesAnswerNeeds, status: ItemStatus): OutputItem {
  const { id: callId = '', name = '', text = '' } = readToolCall(call)
  return callItem(id, { callId, tool: ownTool(name, needs), text }, status)
}

function responsesUsage(usage: WireUsage): object {
  return {
    input_tokens: usage.prompt_tokens,
    input_tokens_details: { cached_tokens: usage.prompt_tokens_details.cached_tokens, cache_write_tokens: 0 },
    output_tokens: usage.completion_tokens,
    output_tokens_details: usage.completion_tokens_details,
    total_tokens: usage.total_tokens,
  }
}
