import type { Deployment } from '../../catalog/model.ts'
import type { JsonBody } from '../../shared/json/json-body.ts'
import type { PromptHasher } from '../../engines/prefix/prompt-blocks.ts'

/** Whether the choice of address matters for a prompt: not with a single address, or with balancing by load alone. */
export function isPromptNeeded({ engine }: Deployment): boolean {
  return engine?.balance === 'prefix'
}

/** Adds a field of a body as it was sent, without parsing it again. */
export function addField(hasher: PromptHasher, { bytes, scan }: JsonBody, name: string): void {
  const field = scan.fields.find((it) => it.name === name)
  if (field) hasher.text(bytes.toString('latin1', field.valueStart, field.end))
}
