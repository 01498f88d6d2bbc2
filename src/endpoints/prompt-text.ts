import type { Deployment } from '../core/catalog.ts'
import type { JsonBody } from '../core/json/json-body.ts'
import type { PromptHasher } from '../core/prefix/prompt-blocks.ts'

/** Whether it matters which address of the engine reads a prompt: not if there is one, or they share calls by load. */
export function isPromptWanted({ engine }: Deployment): boolean {
  return engine?.balance === 'prefix'
}

/** Adds a field of a body as it was sent, without parsing it again. */
export function addField(hasher: PromptHasher, { bytes, scan }: JsonBody, name: string): void {
  const field = scan.fields.find((it) => it.name === name)
  if (field) hasher.text(bytes.toString('latin1', field.valueStart, field.end))
}
