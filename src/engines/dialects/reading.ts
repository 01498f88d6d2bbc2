/** Safe conversions for the unknown JSON that servers send. */

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

/** The largest context the catalog allows. A larger count cannot be right. */
const MAX_TOKENS = 100_000_000

export function tokenCount(value: unknown): number | undefined {
  const count = wholeNumber(value)
  return count === undefined || count > MAX_TOKENS ? undefined : count
}

/**
 * `usage.prompt_tokens`, or the total if that is missing: ranking and embedding have no output. Every text has
 * at least one token, so 0 means that the server does not count.
 */
export function inputTokensOf(body: unknown): number | undefined {
  const usage = asRecord(asRecord(body)['usage'])
  return (tokenCount(usage['prompt_tokens']) ?? tokenCount(usage['total_tokens'])) || undefined
}
