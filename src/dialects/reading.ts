/** Small readers for what servers send: unknown until looked at. */

export type Json = Readonly<Record<string, unknown>>

export function record(value: unknown): Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {}
}

export function list(value: unknown): readonly unknown[] | undefined {
  return Array.isArray(value) ? value : undefined
}

export function wholeNumber(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
}

export function finiteNumber(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}

/** `usage.prompt_tokens`, or the total where only that is told: ranking and embedding have no output. */
export function inputTokensOf(body: unknown): number | undefined {
  const usage = record(record(body)['usage'])
  return wholeNumber(usage['prompt_tokens']) ?? wholeNumber(usage['total_tokens'])
}
