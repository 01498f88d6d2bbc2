import { createHash } from 'node:crypto'

/** The longest name that a chat takes for a tool. */
const LONGEST = 64
const HASH_CHARACTERS = 8

/**
 * The name by which a chat knows a tool of another API. A name that a chat does not take is shortened in the same way every
 * time, whatever other tools there are, so that the prompt stays the same from turn to turn.
 */
export function chatToolName(name: string): string {
  const plain = name.replaceAll(/[^a-zA-Z0-9_.-]/g, '_')
  if (plain === name && name.length <= LONGEST) return name
  const hash = createHash('sha256').update(name).digest('hex').slice(0, HASH_CHARACTERS)
  return `${plain.slice(0, LONGEST - HASH_CHARACTERS - 1)}_${hash}`
}
