import { asRecord, wholeNumber } from '../../engines/dialects/reading.ts'

/** A tool call that a model generated, or a piece of one in a stream. */
export function toolCallText(call: unknown): string {
  const { name, arguments: text } = asRecord(asRecord(call)['function'])
  return [name, text].filter((it) => typeof it === 'string' && it !== '').join(' ')
}

/** The calls with only as much of their arguments as `keep` returns, without those that have nothing left. */
export function cutToolCalls(calls: readonly unknown[], keep: (text: string) => string): readonly object[] {
  return calls.map(asRecord).flatMap((call) => {
    const written = asRecord(call['function'])
    const { name, arguments: text } = written
    if (typeof name === 'string' && keep(name) !== name) return []
    const kept = typeof text === 'string' ? keep(text) : ''
    return name === undefined && kept === '' ? [] : [{ ...call, function: { ...written, arguments: kept } }]
  })
}

/** Complete tool calls in our format. `idOf` generates a missing id. */
export function wholeToolCalls(calls: readonly unknown[], idOf: (index: number) => string): readonly object[] {
  return calls.map((call, index) => {
    const { id, name, text } = readToolCall(call)
    return { id: id ?? idOf(index), type: 'function', function: { name: name ?? '', arguments: text ?? '' } }
  })
}

/** Converts the pieces of one streamed choice's tool calls to our format. */
export type ToolCallPieces = (pieces: readonly unknown[]) => readonly object[]

interface OpenCall {
  readonly index: number
  /** As the engine sent it. */
  readonly engineId: string | undefined
  /** As callers know it; undefined if neither id nor name has arrived yet. */
  readonly id: string | undefined
  readonly name: string
  /** Whether a piece of it was sent to callers. */
  readonly isSent: boolean
}

/**
 * Id and name are sent once, with the first piece of a call. Some servers repeat them in every piece, and a client that
 * joins the pieces would get the name many times over. Others give every call the same index.
 */
export function toolCallPieces(idOf: (index: number) => string): ToolCallPieces {
  /** By the engine's index. */
  const open = new Map<number, OpenCall>()
  let nextIndex = 0

  function openCall(given: number, { id, name }: ReadCall): OpenCall {
    const call = open.get(given)
    const isAnother = name !== undefined && id !== undefined && call?.engineId !== undefined && call.engineId !== id
    if (call && !isAnother) return call
    return { index: call ? nextIndex : given, engineId: undefined, id: undefined, name: '', isSent: false }
  }

  function rewritten(piece: unknown, position: number): object | undefined {
    const read = readToolCall(piece)
    const given = read.index ?? position
    const call = openCall(given, read)
    const { index } = call
    const id = call.id ?? read.id ?? (read.name === undefined ? undefined : idOf(index))
    const isNamed = read.name !== undefined && read.name !== call.name
    const isNew = id !== call.id || isNamed || Boolean(read.text)
    nextIndex = Math.max(nextIndex, index + 1)
    open.set(given, {
      index,
      engineId: call.engineId ?? read.id,
      id,
      name: isNamed ? call.name + read.name : call.name,
      isSent: call.isSent || isNew,
    })
    if (!isNew) return undefined
    return {
      index,
      ...(id === call.id ? {} : { id }),
      // The OpenAI SDK expects it when the next call begins, even if the id is late.
      ...(call.isSent ? {} : { type: 'function' }),
      function: { ...(isNamed ? { name: read.name } : {}), arguments: read.text ?? '' },
    }
  }

  return (pieces) => pieces.flatMap((piece, position) => rewritten(piece, position) ?? [])
}

interface ReadCall {
  readonly index: number | undefined
  readonly id: string | undefined
  readonly name: string | undefined
  /** The arguments, or a piece of them. */
  readonly text: string | undefined
}

/** A tool call, or a piece of one, as an engine or Weir generated it. */
export function readToolCall(call: unknown): ReadCall {
  const { index, id, function: written } = asRecord(call)
  const { name, arguments: text } = asRecord(written)
  return {
    index: wholeNumber(index),
    id: typeof id === 'string' && id !== '' ? id : undefined,
    name: typeof name === 'string' && name !== '' ? name : undefined,
    // Some servers send an object instead of its JSON.
    text:
      typeof text === 'object' && text !== null ? JSON.stringify(text) : typeof text === 'string' ? text : undefined,
  }
}
