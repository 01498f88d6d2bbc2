import type { AnswerHead } from '../../engines/job.ts'
import type { ChatEnding, ChatEvents } from '../chat/form.ts'
import { partsInOrder, type AnswerPart } from '../chat/parts-in-order.ts'
import { namedEvent } from '../generation/named-event.ts'
import type { WireUsage } from '../generation/generation-usage.ts'
import { messageEnd, messageHead, messagesUsage, startUsage, type MessagesAnswerNeeds } from './answer.ts'
import { messagesError } from './errors.ts'
import { signatureOf } from './thinking.ts'

const notEnded = { stop_reason: null, stop_sequence: null, stop_details: null }
const PING = namedEvent({ type: 'ping' })

/**
 * The events of /messages: one message_start, then blocks, each opened, filled and closed before the next one, then
 * message_delta with the usage, and message_stop.
 */
export function messagesEvents(head: AnswerHead, likelyInputTokens: number, needs: MessagesAnswerNeeds): ChatEvents {
  const parts = partsInOrder({ open, piece, close }, (index) => `call_${head.id}_${index}`)
  let isStarted = false
  let index = -1
  let kind: AnswerPart['kind'] = 'text'
  let thought = ''
  let hasCalls = false
  let ending: ChatEnding = { reason: 'stop', stop: undefined }

  function start(): string {
    if (isStarted) return ''
    isStarted = true
    const usage = startUsage(head, estimatedUsage(likelyInputTokens))
    const message = { ...messageHead(head), content: [], ...notEnded, usage }
    return namedEvent({ type: 'message_start', message })
  }

  function open(part: AnswerPart): string {
    index++
    kind = part.kind
    hasCalls ||= kind === 'call'
    return namedEvent({ type: 'content_block_start', index, content_block: emptyBlock(part) })
  }

  function emptyBlock(part: AnswerPart): object {
    if (part.kind === 'call') {
      return { type: 'tool_use', id: part.id, name: needs.toolNames.get(part.name) ?? part.name, input: {} }
    }
    return part.kind === 'text' ? { type: 'text', text: '' } : { type: 'thinking', thinking: '', signature: '' }
  }

  function piece(text: string): string {
    if (kind === 'text') return delta({ type: 'text_delta', text })
    if (kind === 'call') return delta({ type: 'input_json_delta', partial_json: text })
    thought += text
    return needs.thinking === 'shown' ? delta({ type: 'thinking_delta', thinking: text }) : ''
  }

  function delta(content: object): string {
    return namedEvent({ type: 'content_block_delta', index, delta: content })
  }

  function close(): string {
    const signature = signatureOf(thought, needs.thinking)
    thought = ''
    const signed = kind === 'reasoning' ? delta({ type: 'signature_delta', signature }) : ''
    return signed + namedEvent({ type: 'content_block_stop', index })
  }

  return {
    delta({ reasoning_content: thinking, ...others }) {
      const isHidden = thinking === undefined || needs.thinking === 'hidden'
      return start() + parts.take(isHidden ? others : { reasoning_content: thinking, ...others })
    },
    finish(reached) {
      ending = reached
    },
    isBroken: parts.isBroken,
    closing: (usage) =>
      parts.end(ending.reason === 'length') +
      namedEvent({ type: 'message_delta', delta: messageEnd(ending, hasCalls), usage: messagesUsage(usage) }) +
      namedEvent({ type: 'message_stop' }),
    failure: (error) => namedEvent({ ...messagesError(error, head.id) }),
    idle: () => start() + PING,
  }
}

function estimatedUsage(inputTokens: number): WireUsage {
  return {
    prompt_tokens: inputTokens,
    completion_tokens: 0,
    total_tokens: inputTokens,
    prompt_tokens_details: { cached_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0 },
  }
}
