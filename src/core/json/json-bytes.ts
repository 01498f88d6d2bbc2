import type { SlicedWork } from '../sliced-work.ts'

/** Text is encoded in pieces of about this many characters. */
const PIECE_CHARACTERS = 65_536

/** The JSON of plain data, in UTF-8: what JSON.stringify writes, but in slices. */
export function* jsonBytes(value: unknown, pieceCharacters = PIECE_CHARACTERS): SlicedWork<Buffer> {
  const pieces: Buffer[] = []
  let text = ''

  function* write(it: unknown): SlicedWork<void> {
    if (isSmall(it, pieceCharacters)) text += JSON.stringify(it ?? null)
    else if (typeof it === 'string') yield* writeLong(it)
    else if (Array.isArray(it)) yield* writeArray(it)
    else yield* writeObject(it as Readonly<Record<string, unknown>>)
    if (text.length > pieceCharacters) yield* encode()
  }

  function* writeLong(string: string): SlicedWork<void> {
    text += '"'
    for (let from = 0; from < string.length;) {
      const to = cutBetweenCharacters(string, from + pieceCharacters)
      text += JSON.stringify(string.slice(from, to)).slice(1, -1)
      yield* encode()
      from = to
    }
    text += '"'
  }

  function* writeArray(items: readonly unknown[]): SlicedWork<void> {
    let separator = '['
    for (const item of items) {
      text += separator
      separator = ','
      yield* write(item)
    }
    text += ']'
  }

  function* writeObject(object: Readonly<Record<string, unknown>>): SlicedWork<void> {
    let separator = '{'
    for (const name of Object.keys(object)) {
      if (object[name] === undefined) continue
      text += `${separator}${JSON.stringify(name)}:`
      separator = ','
      yield* write(object[name])
    }
    text += separator === '{' ? '{}' : '}'
  }

  function* encode(): SlicedWork<void> {
    pieces.push(Buffer.from(text))
    text = ''
    yield
  }

  if (isSmall(value, pieceCharacters)) return Buffer.from(JSON.stringify(value))
  yield* write(value)
  pieces.push(Buffer.from(text))
  return pieces.length === 1 && pieces[0] ? pieces[0] : Buffer.concat(pieces)
}

/** Whether data has at most about that many characters. It looks at no more than that. */
function isSmall(value: unknown, characters: number): boolean {
  return typeof value !== 'string' && (typeof value !== 'object' || value === null)
    ? true
    : roomAfter(value, characters) >= 0
}

function roomAfter(value: unknown, room: number): number {
  if (typeof value === 'string') return room - value.length
  if (typeof value !== 'object' || value === null) return room - 4
  let left = room - 2
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length && left >= 0; index++) left = roomAfter(value[index], left)
    return left
  }
  for (const name in value) {
    left = roomAfter((value as Readonly<Record<string, unknown>>)[name], left - name.length)
    if (left < 0) break
  }
  return left
}

/** A surrogate pair is one character. */
function cutBetweenCharacters(text: string, at: number): number {
  return at < text.length && /[\ud800-\udbff]/.test(text.charAt(at - 1)) ? at - 1 : at
}
