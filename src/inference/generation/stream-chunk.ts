import { asList, asRecord, wholeNumber, type JsonRecord } from '../../engines/dialects/reading.ts'

/** One event of an engine's stream. */
export interface StreamChunk<Choice> extends JsonRecord {
  readonly choices?: readonly Choice[] | null
}

const nothing: StreamChunk<never> = {}

/**
 * Parses an event. One that is empty or `null` has no content. `unreadable` is not JSON; `wrong` reports an error or
 * has something else in place of a choice.
 */
export function readChunk<Choice>(json: string): StreamChunk<Choice> | 'unreadable' | 'wrong' {
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch {
    return json.trim() === '' ? nothing : 'unreadable'
  }
  if (typeof value !== 'object' || Array.isArray(value)) return 'wrong'
  // null is read as an empty record.
  const chunk = asRecord(value)
  return isGiven(chunk['error']) || !asList(chunk['choices'] ?? [])?.every(isChoice) ? 'wrong' : chunk
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null
}

/** Whether every field that Weir reads is missing or of its type. */
function isChoice(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const { index, delta, text, finish_reason: reason } = asRecord(value)
  return (
    (!isGiven(index) || wholeNumber(index) !== undefined) &&
    (!isGiven(delta) || (typeof delta === 'object' && !Array.isArray(delta))) &&
    (!isGiven(text) || typeof text === 'string') &&
    (!isGiven(reason) || typeof reason === 'string')
  )
}
