import type { Deployment } from '../core/catalog.ts'
import type { JsonBody } from '../core/json/json-body.ts'
import { HASHED_CHARACTERS, type PromptHasher } from '../core/prefix/prompt-blocks.ts'
import type { SlicedWork } from '../core/sliced-work.ts'

/** Others get their turn after this many pieces. */
const PIECES_PER_SLICE = 64

/** Whether it matters which address of the engine reads a prompt: not if there is one, or they share calls by load. */
export function isPromptWanted({ engine }: Deployment): boolean {
  return engine?.balance === 'prefix'
}

/** Adds a text of any length to a prompt. */
export function addText(hasher: PromptHasher, text: string): SlicedWork<void> {
  return inPieces(text, hasher.text)
}

export function* addImage(hasher: PromptHasher, url: string): SlicedWork<void> {
  yield* inPieces(url, hasher.image)
  hasher.endImage()
}

function* inPieces(text: string, add: (piece: string) => void): SlicedWork<void> {
  if (text.length <= HASHED_CHARACTERS) return add(text)
  for (let from = 0, pieces = 1; from < text.length; from += HASHED_CHARACTERS, pieces++) {
    add(text.slice(from, from + HASHED_CHARACTERS))
    if (pieces % PIECES_PER_SLICE === 0) yield
  }
}

/** Adds a field of a body as it was sent, without parsing it again. */
export function* addField(hasher: PromptHasher, { bytes, scan }: JsonBody, name: string): SlicedWork<void> {
  const field = scan.fields.find((it) => it.name === name)
  if (!field) return
  for (let from = field.valueStart, pieces = 1; from < field.end; from += HASHED_CHARACTERS, pieces++) {
    hasher.text(bytes.toString('latin1', from, Math.min(field.end, from + HASHED_CHARACTERS)))
    if (pieces % PIECES_PER_SLICE === 0) yield
  }
}
