import type { ApiError } from '../../core/errors.ts'
import type { AnswerHead } from '../../core/job.ts'
import type { ChatEnding, ChatEvents } from '../chat/form.ts'
import { readToolCall } from '../chat/tool-calls.ts'
import { namedEvent } from '../named-event.ts'
import { endedResponse, failedResponse, ownTool, response, type AnswerNeeds } from './answer.ts'
import {
  callItem,
  messageItem,
  reasoningItem,
  reasoningPart,
  textPart,
  type ItemStatus,
  type OutputItem,
} from './items.ts'
import { customInput } from './tools.ts'

/** An item that is being written. */
interface OpenItem {
  /** What it is written from: the text, the reasoning, or one of the calls. */
  readonly source: string
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
 * The events of /responses: created, in_progress, then items, of which each is added, filled and done before the next one,
 * then one completed, incomplete or failed.
 */
export function responsesEvents(head: AnswerHead, needs: AnswerNeeds): ChatEvents {
  const send = numberedEvents()
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

  function close(status: ItemStatus): string {
    if (!open) return ''
    const { text, place } = open
    const item = open.item(text, status)
    output.push(item)
    const events = open.done(text) + send('response.output_item.done', { output_index: place.output_index, item })
    open = undefined
    return events
  }

  /** Adds a piece to the item with this source. If that is not the open one, it is a new one. */
  function write(source: string, make: (id: string) => Pick<OpenItem, 'item'>, kind: ItemKind, piece: string): string {
    let events = ''
    if (open?.source !== source) {
      events += close('completed')
      const { item } = make(`${head.id}_${output.length}`)
      const added = item('', 'in_progress')
      const place = { item_id: added.id, output_index: output.length }
      open = { source, place, text: '', item, ...kind(send, place) }
      events += send('response.output_item.added', { output_index: place.output_index, item: added })
      events += open.opening?.() ?? ''
    }
    open.text += piece
    return piece === '' ? events : events + (open.delta?.(piece) ?? '')
  }

  /** The first piece of a call has its id and name. Engines write calls one after the other. */
  function call(piece: object): string {
    const { index, id: callId = '', name = '', text = '' } = readToolCall(piece)
    const source = `call ${index}`
    if (open?.source !== source && callId === '') return ''
    const tool = ownTool(name, needs)
    const make = (id: string): Pick<OpenItem, 'item'> => ({
      item: (written, status) => callItem(id, { callId, tool, text: written }, status),
    })
    return write(source, make, tool.kind === 'custom' ? customCall : functionCall, text)
  }

  const reasoning = (id: string): Pick<OpenItem, 'item'> => ({
    item: (text, status) =>
      reasoningItem(id, status === 'in_progress' ? undefined : text, status, needs.sealsReasoning),
  })
  const message = (id: string): Pick<OpenItem, 'item'> => ({
    item: (text, status) => messageItem(id, status === 'in_progress' ? [] : [textPart(text)], status),
  })

  return {
    delta({ content, reasoning_content: thought, tool_calls: calls = [] }) {
      let events = start()
      if (thought !== undefined) events += write('reasoning', reasoning, reasoningText, thought)
      if (content !== undefined) events += write('text', message, messageText, content)
      for (const piece of calls) events += call(piece)
      return events
    },
    finish(reached) {
      ending = reached
      return close(reached.reason === 'length' ? 'incomplete' : 'completed')
    },
    closing(usage) {
      const ended = endedResponse(head, needs, output, ending, usage)
      const { status } = ended as { status: string }
      return send(`response.${status}`, { response: ended })
    },
    failure: (error) => start() + send('response.failed', { response: failedResponse(head, needs, output, error) }),
    // Clients count an event as a sign of life, and a comment not.
    idle: () => (isStarted ? send('response.in_progress', { response: response(head, needs) }) : start()),
  }
}

/** A refusal as a stream of its own. Codex learns of a full context from such an event, and from no status. */
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

const messageText: ItemKind = (send, place) => inPart(send, place, 'response.output_text', textPart, { logprobs: [] })

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

/** The model writes JSON, and the caller gets the text in it, so it is sent when it is complete. */
const customCall: ItemKind = (send, place) => ({
  done(text) {
    const input = customInput(text)
    return (
      send('response.custom_tool_call_input.delta', { ...place, delta: input }) +
      send('response.custom_tool_call_input.done', { ...place, input })
    )
  },
})
