import type { AnswerHead } from '../../core/job.ts'
import type { ChatEnding, ChatEvents } from '../chat/form.ts'
import { readToolCall } from '../chat/tool-calls.ts'
import { namedEvent } from '../named-event.ts'
import type { WireUsage } from '../generation-usage.ts'
import { messageEnd, messageHead, messagesUsage, type AnswerNeeds } from './answer.ts'
import { messagesError } from './errors.ts'
import { signatureOf } from './thinking.ts'

const notEnded = { stop_reason: null, stop_sequence: null, stop_details: null }
const PING = namedEvent({ type: 'ping' })

/**
 * The events of /messages: one message_start, then blocks, of which each is opened, filled and closed before the next one,
 * then message_delta with the usage, and message_stop.
 */
export function messagesEvents(head: AnswerHead, likelyInputTokens: number, needs: AnswerNeeds): ChatEvents {
  let isStarted = false
  let index = -1
  let open: string | undefined
  let thought = ''
  let ending: ChatEnding = { reason: 'stop', stop: undefined }

  function start(): string {
    if (isStarted) return ''
    isStarted = true
    const usage = messagesUsage(estimatedUsage(likelyInputTokens))
    const message = { ...messageHead(head), content: [], ...notEnded, usage }
    return namedEvent({ type: 'message_start', message })
  }

  function delta(piece: object): string {
    return namedEvent({ type: 'content_block_delta', index, delta: piece })
  }

  /** `kind` says which block a piece belongs to: the text, the thinking, or one of the calls. */
  function block(kind: string, content: object, piece: object | undefined): string {
    const opening = kind === open ? '' : close() + openBlock(kind, content)
    return opening + (piece ? delta(piece) : '')
  }

  function openBlock(kind: string, content: object): string {
    open = kind
    index++
    return namedEvent({ type: 'content_block_start', index, content_block: content })
  }

  function close(): string {
    if (open === undefined) return ''
    const signature = signatureOf(thought, needs.thinking)
    const signed = open === 'thinking' ? delta({ type: 'signature_delta', signature }) : ''
    open = undefined
    thought = ''
    return signed + namedEvent({ type: 'content_block_stop', index })
  }

  /** The first piece of a call has its id and name. Engines write calls one after the other. */
  function call(piece: object): string {
    const { index: number, id, name = '', text } = readToolCall(piece)
    const kind = `call ${number}`
    if (kind !== open && id === undefined) return ''
    const content = { type: 'tool_use', id, name: needs.toolNames.get(name) ?? name, input: {} }
    return block(kind, content, text ? { type: 'input_json_delta', partial_json: text } : undefined)
  }

  return {
    delta({ content: text, reasoning_content: thinking, tool_calls: calls = [] }) {
      let events = start()
      if (thinking !== undefined && needs.thinking !== 'hidden') {
        const piece = needs.thinking === 'shown' ? { type: 'thinking_delta', thinking } : undefined
        events += block('thinking', { type: 'thinking', thinking: '', signature: '' }, piece)
        thought += thinking
      }
      if (text !== undefined) events += block('text', { type: 'text', text: '' }, { type: 'text_delta', text })
      for (const piece of calls) events += call(piece)
      return events
    },
    finish(reached) {
      ending = reached
      return close()
    },
    closing: (usage) =>
      namedEvent({ type: 'message_delta', delta: messageEnd(ending), usage: messagesUsage(usage) }) +
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
