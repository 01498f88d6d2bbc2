import type { ResponsesItem } from './schema.ts'
import { customInput, type OwnTool } from './tools.ts'

/** The items of an answer of /responses. */

export type ItemStatus = 'in_progress' | 'completed' | 'incomplete'

export interface OutputItem {
  readonly id: string
  readonly type: string
  readonly [field: string]: unknown
}

export function outputTextPart(text: string): object {
  return { type: 'output_text', text, annotations: [], logprobs: [] }
}

export function messageItem(id: string, content: readonly object[], status: ItemStatus): OutputItem {
  return { id: `msg_${id}`, type: 'message', role: 'assistant', status, content }
}

export function reasoningPart(text: string): object {
  return { type: 'reasoning_text', text }
}

/** `sealed`: the caller wants the reasoning in the opaque field that clients send back. */
export function reasoningItem(id: string, text: string | undefined, status: ItemStatus, sealed: boolean): OutputItem {
  return {
    id: `rs_${id}`,
    type: 'reasoning',
    status,
    summary: [],
    content: text === undefined ? [] : [reasoningPart(text)],
    ...(sealed && text !== undefined ? { encrypted_content: Buffer.from(text).toString('base64') } : {}),
  }
}

/** The text of a reasoning item that Weir sent. It belongs to the caller, so it is packed and not encrypted. */
export function readReasoning({ content, encrypted_content: sealed }: ResponsesItem): string {
  const text = Array.isArray(content) ? content.map((part) => part.text ?? '').join('') : (content ?? '')
  return text || (sealed ? Buffer.from(sealed, 'base64').toString() : '')
}

export interface WrittenCall {
  readonly callId: string
  readonly tool: OwnTool
  readonly text: string
}

export function callItem(id: string, { callId, tool, text }: WrittenCall, status: ItemStatus): OutputItem {
  const { kind, name, namespace } = tool
  const named = { call_id: callId, name, ...(namespace === undefined ? {} : { namespace }) }
  return kind === 'custom'
    ? { id: `ctc_${id}`, type: 'custom_tool_call', status, ...named, input: customInput(text) }
    : { id: `fc_${id}`, type: 'function_call', status, ...named, arguments: text }
}
