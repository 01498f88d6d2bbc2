/** One HTTP request of an SDK and its answer. Times are from `performance.now`. */
export interface Attempt {
  readonly sentAt: number
  readonly answeredAt: number
  readonly status: number
  readonly retryAfter: string | null
}

/** For the `fetch` option of the SDKs: the normal fetch, but it records each attempt. */
export function recordingFetch(): { fetch: typeof fetch; attempts: Attempt[]; firstAnswer: Promise<void> } {
  const attempts: Attempt[] = []
  const first = Promise.withResolvers<void>()
  return {
    attempts,
    async fetch(...request) {
      const sentAt = performance.now()
      const response = await fetch(...request)
      const { status, headers } = response
      attempts.push({ sentAt, answeredAt: performance.now(), status, retryAfter: headers.get('retry-after') })
      first.resolve()
      return response
    },
    firstAnswer: first.promise,
  }
}

/** The status and the Retry-After header of each attempt. */
export function outcomes(attempts: readonly Attempt[]): [status: number, retryAfter: string | null][] {
  return attempts.map(({ status, retryAfter }) => [status, retryAfter])
}

/** How long an SDK waited between the answer to its first attempt and its second attempt. */
export function pauseMs(attempts: readonly Attempt[]): number {
  const [first, second] = attempts
  if (!first || !second) throw new Error(`there were only ${attempts.length} attempts`)
  return second.sentAt - first.answeredAt
}
