import type { Deployment } from '../core/catalog.ts'
import type { JsonBody } from '../core/json/json-body.ts'
import type { PromptHasher } from '../core/prefix/prompt-blocks.ts'
import type { SlicedWork } from '../core/sliced-work.ts'

/** Others get their turn after so many characters. */
export const SLICE_CHARACTERS = 500_000
/** A field is made a text of in pieces of this size. */
const PIECE_BYTES = 8192

/** Whether it matters which address of the engine reads a prompt: not if there is one, or they share calls by load. */
export function isPromptWanted({ engine }: Deployment): boolean {
  return engine?.balance === 'prefix'
}

/** Adds a text of any length to a prompt. */
export function addText(hasher: PromptHasher, text: string): SlicedWork<void> {
  return inSlices(text, hasher.text)
}

export function* addImage(hasher: PromptHasher, url: string): SlicedWork<void> {
  yield* inSlices(url, hasher.image)
  hasher.endImage()
}

function* inSlices(text: string, add: PromptHasher['text']): SlicedWork<void> {
  for (let from = 0; from < text.length; from += SLICE_CHARACTERS) {
    if (from > 0) yield
    add(text, from, Math.min(text.length, from + SLICE_CHARACTERS))
  }
}

/** Adds a field of a body as it was sent, without parsing it again. */
export function* addField(hasher: PromptHasher, { bytes, scan }: JsonBody, name: string): SlicedWork<void> {
  const field = scan.fields.find((it) => it.name === name)
  if (!field) return
  for (let from = field.valueStart, added = 0; from < field.end; from += PIECE_BYTES) {
    hasher.text(bytes.toString('latin1', from, Math.min(field.end, from + PIECE_BYTES)))
    added += PIECE_BYTES
    if (added % SLICE_CHARACTERS < PIECE_BYTES) yield
  }
}
