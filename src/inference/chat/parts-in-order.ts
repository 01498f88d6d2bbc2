import type { ChatDelta } from './form.ts'
import { readToolCall } from './tool-calls.ts'

/** A part of an answer in the form of another API. */
export type AnswerPart =
  | { readonly kind: 'text' | 'reasoning' }
  | { readonly kind: 'call'; readonly id: string; readonly name: string }

/** Writes the parts of an answer as events. Each part is opened, filled and closed before the next one is opened. */
export interface PartEvents {
  open(part: AnswerPart): string
  piece(text: string): string
  /** `isCut`: the answer ended at its limit, and this part is not complete. */
  close(isCut: boolean): string
}

/** Puts the deltas of a choice in order, for an API whose parts do not overlap. */
export interface PartsInOrder {
  take(delta: ChatDelta): string
  /** Closes every part. `isCut`: the answer ended at its limit. */
  end(isCut: boolean): string
  /** A call continued after it was closed, which these APIs have no event for. */
  isBroken(): boolean
}

interface WrittenPart {
  readonly kind: AnswerPart['kind']
  id: string
  name: string
  /** What has not been sent yet. */
  held: string
  isComplete: boolean
}

/**
 * A chat keeps all its calls open: an engine may interleave them, and generate text between two pieces of a call. Here
 * other parts are held back until the JSON of the open call is complete. So nothing waits if the engine generates one
 * call after the other, and max_tokens bounds what is held. `idOf` generates a missing call id.
 */
export function partsInOrder(events: PartEvents, idOf: (index: number) => string): PartsInOrder {
  /** Parts that are not closed, in the order in which they began. Only the first one can be open. */
  const parts = new Set<WrittenPart>()
  const calls = new Map<number, { readonly part: WrittenPart; readonly isEndedBy: (piece: string) => boolean }>()
  let latest: WrittenPart | undefined
  let open: WrittenPart | undefined
  let isBroken = false

  function begin(kind: AnswerPart['kind'], id: string, isComplete: boolean): WrittenPart {
    const part = { kind, id, name: '', held: '', isComplete }
    parts.add(part)
    latest = part
    return part
  }

  function takeText(kind: 'text' | 'reasoning', text: string): void {
    const part = latest?.kind === kind ? latest : begin(kind, '', true)
    part.held += text
  }

  function takeCall(piece: unknown): void {
    const { index = 0, id, name, text = '' } = readToolCall(piece)
    let call = calls.get(index)
    if (!call) calls.set(index, (call = { part: begin('call', idOf(index), false), isEndedBy: jsonEnd() }))
    const { part, isEndedBy } = call
    const isClosed = !parts.has(part)
    // Whitespace after the end of JSON has no meaning.
    if ((isClosed && text.trim() !== '') || ((isClosed || part === open) && name !== undefined)) isBroken = true
    part.id = id ?? part.id
    part.name += name ?? ''
    part.held += text
    part.isComplete = isEndedBy(text)
  }

  /** A name may arrive in pieces, so a call is opened when its arguments or another part begins. */
  function canOpen({ kind, name, held }: WrittenPart): boolean {
    return kind !== 'call' || (name !== '' && (held !== '' || parts.size > 1))
  }

  function advance(isEnd: boolean, isCut: boolean): string {
    let text = ''
    for (const part of parts) {
      if (part !== open) {
        if (!isEnd && !canOpen(part)) break
        open = part
        text += events.open(
          part.kind === 'call' ? { kind: part.kind, id: part.id, name: part.name } : { kind: part.kind },
        )
      }
      if (part.held !== '') text += events.piece(part.held)
      part.held = ''
      const isLast = parts.size === 1
      if (!isEnd && (isLast || !part.isComplete)) break
      text += events.close(isCut && (isLast || !part.isComplete))
      parts.delete(part)
    }
    return text
  }

  return {
    take({ reasoning_content: reasoning, content, refusal, tool_calls: pieces = [] }) {
      if (reasoning !== undefined) takeText('reasoning', reasoning)
      if (content !== undefined) takeText('text', content)
      if (refusal !== undefined) takeText('text', refusal)
      for (const piece of pieces) takeCall(piece)
      return advance(false, false)
    },
    end: (isCut) => advance(true, isCut),
    isBroken: () => isBroken,
  }
}

/** Follows an object or array that arrives in pieces. Returns after each piece whether it is complete. */
function jsonEnd(): (piece: string) => boolean {
  let depth = 0
  let isInString = false
  let isEscaped = false
  let hasEnded = false
  return (piece) => {
    for (let index = 0; index < piece.length; index++) {
      const character = piece[index]
      if (isInString) {
        if (isEscaped) isEscaped = false
        else if (character === '\\') isEscaped = true
        else if (character === '"') isInString = false
      } else if (character === '"') isInString = true
      else if (character === '{' || character === '[') depth++
      else if (character === '}' || character === ']') hasEnded = --depth <= 0
    }
    return hasEnded && depth <= 0
  }
}
