import type { ApiError } from '../../shared/errors.ts'
import type { AnswerHead } from '../../engines/job.ts'
import type { ChatEnding, ChatEvents } from '../chat/form.ts'
import { partsInOrder, type AnswerPart } from '../chat/parts-in-order.ts'
import { namedEvent } from '../generation/named-event.ts'
import { endedResponse, failedResponse, ownTool, response, type ResponsesAnswerNeeds } from './answer.ts'
import {
  callItem,
  messageItem,
  reasoningItem,
  reasoningPart,
  outputTextPart,
  type ItemStatus,
  type OutputItem,
} from './items.ts'
import { customInput } from './tools.ts'

/** An item that is being written. */
interface OpenItem {
  readonly place: { readonly item_id: string; readonly output_index: number }
  text: string
  item(text: string, status: ItemStatus): OutputItem
  opening?(): string
  delta?(text: string): string
  done(text: string): string
}

/** Writes an event with the next number. */
type Send = (type: string, fields: object) => string

/**
 * The events of /responses: created, in_progress, then items, each added, filled and done before the next one, then one
 * completed, incomplete or failed.
 */
export function responsesEvents(head: AnswerHead, needs: ResponsesAnswerNeeds): ChatEvents {
  const send = numberedEvents()
  const parts = partsInOrder({ open: openItem, piece, close }, (index) => `call_${head.id}_${index}`)
  const output: OutputItem[] = []
  let isStarted = false
  let open: OpenItem | undefined
  let ending: ChatEnding = { reason: 'stop', stop: undefined }

  function start(): string {
    if (isStarted) return ''
    isStarted = true
    const fields = { response: response(head, needs) }
    return send('response.created', fields) + send('response.in_progress', fields)
  }

  function openItem(part: AnswerPart): string {
    const { item, kind } = itemOf(part, `${head.id}_${output.length}`)
    const added = item('', 'in_progress')
    const place = { item_id: added.id, output_index: output.length }
    open = { place, text: '', item, ...kind(send, place) }
    return (
      send('response.output_item.added', { output_index: place.output_index, item: added }) + (open.opening?.() ?? '')
    )
  }

  function itemOf(part: AnswerPart, id: string): Pick<OpenItem, 'item'> & { readonly kind: ItemKind } {
    switch (part.kind) {
      case 'reasoning':
        return {
          kind: reasoningText,
          item: (text, status) =>
            reasoningItem(id, status === 'in_progress' ? undefined : text, status, needs.sealsReasoning),
        }
      case 'text':
        return {
          kind: messageText,
          item: (text, status) => messageItem(id, status === 'in_progress' ? [] : [outputTextPart(text)], status),
        }
      case 'call': {
        const tool = ownTool(part.name, needs)
        return {
          kind: tool.kind === 'custom' ? customCall : functionCall,
          item: (text, status) => callItem(id, { callId: part.id, tool, text }, status),
        }
      }
    }
  }

  function piece(text: string): string {
    if (!open) return ''
    open.text += text
    return open.delta?.(text) ?? ''
  }

  function close(isCut: boolean): string {
    if (!open) return ''
    const { text, place, done } = open
    const item = open.item(text, isCut ? 'incomplete' : 'completed')
    output.push(item)
    open = undefined
    return done(text) + send('response.output_item.done', { output_index: place.output_index, item })
  }

  return {
    delta: (delta) => start() + parts.take(delta),
    finish(reached) {
      ending = reached
    },
    isBroken: parts.isBroken,
    closing(usage) {
      const rest = parts.end(ending.reason === 'length')
      const ended = endedResponse(head, needs, output, ending, usage)
      const { status } = ended as { status: string }
      return rest + send(`response.${status}`, { response: ended })
    },
    failure: (error) => start() + send('response.failed', { response: failedResponse(head, needs, output, error) }),
    // Clients count an event as activity, but not a comment.
    idle: () => (isStarted ? send('response.in_progress', { response: response(head, needs) }) : start()),
  }
}

/** A refusal as a stream of its own. Codex detects a full context by such an event only, not by a status. */
export function refusedStream(head: AnswerHead, error: ApiError): string {
  const send = numberedEvents()
  const needs = { settings: {} }
  return (
    send('response.created', { response: response(head, needs) }) +
    send('response.failed', { response: failedResponse(head, needs, [], error) })
  )
}

function numberedEvents(): Send {
  let number = 0
  return (type, fields) => namedEvent({ type, sequence_number: number++, ...fields })
}

/** How the content of an item is sent. */
type ItemKind = (send: Send, place: OpenItem['place']) => Pick<OpenItem, 'opening' | 'delta' | 'done'>

const messageText: ItemKind = (send, place) =>
  inPart(send, place, 'response.output_text', outputTextPart, { logprobs: [] })

const reasoningText: ItemKind = (send, place) => inPart(send, place, 'response.reasoning_text', reasoningPart, {})

function inPart(
  send: Send,
  place: OpenItem['place'],
  name: string,
  part: (text: string) => object,
  extra: object,
): ReturnType<ItemKind> {
  const where = { ...place, content_index: 0 }
  return {
    opening: () => send('response.content_part.added', { ...where, part: part('') }),
    delta: (delta) => send(`${name}.delta`, { ...where, delta, ...extra }),
    done: (text) =>
      send(`${name}.done`, { ...where, text, ...extra }) +
      send('response.content_part.done', { ...where, part: part(text) }),
  }
}

const functionCall: ItemKind = (send, place) => ({
  delta: (delta) => send('response.function_call_arguments.delta', { ...place, delta }),
  done: (text) => send('response.function_call_arguments.done', { ...place, arguments: text }),
})

/** The model generates JSON, and the caller gets the text inside it, so it is sent once it is complete. */
const customCall: ItemKind = (send, place) => ({
  done(text) {
    const input = customInput(text)
    return (
      send('response.custom_tool_call_input.delta', { ...place, delta: input }) +
      send('response.custom_tool_call_input.done', { ...place, input })
    )
  },
})
