import { createHash } from 'node:crypto'

/** The maximum length of a tool name in a chat. */
const LONGEST = 64
const HASH_CHARACTERS = 8

/**
 * The name of another API's tool in a chat. A name that a chat does not allow is always shortened the same way,
 * whatever other tools there are, so that the prompt stays the same from turn to turn.
 */
export function chatToolName(name: string): string {
  const plain = name.replaceAll(/[^a-zA-Z0-9_.-]/g, '_')
  if (plain === name && name.length <= LONGEST) return name
  const hash = createHash('sha256').update(name).digest('hex').slice(0, HASH_CHARACTERS)
  return `${plain.slice(0, LONGEST - HASH_CHARACTERS - 1)}_${hash}`
}
