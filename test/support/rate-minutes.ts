import type { RateLimiter, RateSubject } from '../../src/workspaces/rate-limits/rate-limit.ts'

/**
 * Sends requests of one subject to limiters in turn, and counts them by the end of the minute in which they were counted. So it
 * does not matter how long they take.
 */
export async function takenByMinute(
  limiters: readonly RateLimiter[],
  subject: RateSubject,
  { requests, limit, atOnce }: { readonly requests: number; readonly limit: number; readonly atOnce: number },
): Promise<readonly { readonly asked: number; readonly accepted: number }[]> {
  const minutes = new Map<number, { asked: number; accepted: number }>()
  for (let sent = 0; sent < requests; sent += atOnce) {
    await Promise.all(
      Array.from({ length: atOnce }, async (_, index) => {
        const decision = await limiters[index % limiters.length]!.take(subject, limit)
        const { resetAt } = decision.allowance()
        const minute = minutes.get(resetAt) ?? { asked: 0, accepted: 0 }
        minutes.set(resetAt, minute)
        minute.asked += 1
        if (!decision.full) minute.accepted += 1
      }),
    )
  }
  return [...minutes.values()]
}
