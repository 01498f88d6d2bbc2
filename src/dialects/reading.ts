/** Small readers for what servers send: unknown until looked at. */

export type JsonRecord = Readonly<Record<string, unknown>>

export function asRecord(value: unknown): JsonRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonRecord) : {}
}

export function asList(value: unknown): readonly unknown[] | undefined {
  return Array.isArray(value) ? value : undefined
}

export function wholeNumber(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
}

export function finiteNumber(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}

/** The largest context the catalog allows; a count beyond it is none, and could not be billed. */
const MAX_TOKENS = 100_000_000

export function tokenCount(value: unknown): number | undefined {
  const count = wholeNumber(value)
  return count === undefined || count > MAX_TOKENS ? undefined : count
}

/**
 * `usage.prompt_tokens`, or the total where only that is told: ranking and embedding have no output. Every text
 * has a token at least, so a count of 0 is none: some servers fill the field in and do not count.
 */
export function inputTokensOf(body: unknown): number | undefined {
  const usage = asRecord(asRecord(body)['usage'])
  return (tokenCount(usage['prompt_tokens']) ?? tokenCount(usage['total_tokens'])) || undefined
}
