import type { AnswerHead } from '../../engines/job.ts'
import { asRecord } from '../../engines/dialects/reading.ts'
import type { ChatEnding, ChatResult } from '../chat/form.ts'
import { readToolCall } from '../chat/tool-calls.ts'
import { tryParseJson } from '../request/engine-operation.ts'
import type { WireUsage } from '../generation/generation-usage.ts'
import type { TranslatedMessages } from './request.ts'
import { signatureOf, type Thinking } from './thinking.ts'

/** The answer of /messages, converted from that of a chat. */
export type MessagesAnswerNeeds = Pick<TranslatedMessages, 'toolNames' | 'thinking'>

export function wholeMessage(
  head: AnswerHead,
  { message, ending, usage }: ChatResult,
  needs: MessagesAnswerNeeds,
): object {
  const { content, refusal, reasoning_content: reasoning, tool_calls: calls = [] } = message
  const text = (content ?? '') + (refusal ?? '')
  return {
    ...messageHead(head),
    content: [
      ...(reasoning === undefined || needs.thinking === 'hidden' ? [] : [thinkingBlock(reasoning, needs.thinking)]),
      ...(text ? [{ type: 'text', text }] : []),
      ...calls.map((call) => toolUse(call, needs, ending.reason === 'length')),
    ],
    ...messageEnd(ending, calls.length > 0),
    usage: startUsage(head, usage),
  }
}

function thinkingBlock(text: string, thinking: Thinking): object {
  return { type: 'thinking', thinking: thinking === 'shown' ? text : '', signature: signatureOf(text, thinking) }
}

export function messageHead({ id, model }: AnswerHead): object {
  return { id: `msg_${id}`, type: 'message', role: 'assistant', model }
}

/** Clients run tools only if the stop reason is `tool_use`. vLLM reports `stop` if the tool was forced. */
export function messageEnd({ reason, stop }: ChatEnding, hasCalls: boolean): object {
  const isAtStop = reason === 'stop' && stop !== undefined && !hasCalls
  return {
    stop_reason: brokenOff[reason] ?? (hasCalls ? 'tool_use' : isAtStop ? 'stop_sequence' : 'end_turn'),
    stop_sequence: isAtStop ? stop : null,
    stop_details: null,
  }
}

/** Calls in such an answer may be incomplete. */
const brokenOff: Readonly<Record<string, string>> = {
  length: 'max_tokens',
  content_filter: 'refusal',
}

export function messagesUsage(usage: WireUsage): object {
  const cached = usage.prompt_tokens_details.cached_tokens
  return {
    input_tokens: usage.prompt_tokens - cached,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cached,
    output_tokens: usage.completion_tokens,
    output_tokens_details: { thinking_tokens: usage.completion_tokens_details.reasoning_tokens },
  }
}

/** The usage of a whole message, and of one that begins. The usage at the end of a stream does not name the tier. */
export function startUsage({ tier }: AnswerHead, usage: WireUsage): object {
  return { ...messagesUsage(usage), service_tier: tier === 'batch' ? 'batch' : 'standard' }
}

/** A call that was cut off at max_tokens has no complete arguments. */
function toolUse(call: unknown, { toolNames }: MessagesAnswerNeeds, isCut: boolean): object {
  const { id, name = '', text = '' } = readToolCall(call)
  const input = tryParseJson(Buffer.from(text))
  const isObject = asRecord(input) === input
  // Anthropic's documentation has this form for arguments that are not an object.
  const other = isCut || text.trim() === '' ? {} : { INVALID_JSON: text }
  return { type: 'tool_use', id, name: toolNames.get(name) ?? name, input: isObject ? input : other }
}
