import { allowance, take, windowAt, type WindowCount } from '../core/rate-window.ts'
import type { Clock } from '../ports/clock.ts'
import type { RateLimiter, RateView } from '../ports/rate-limit.ts'

/** Beyond this many subjects in one minute (mostly addresses), new ones share a single count. */
const MAX_SUBJECTS = 100_000
const EVERYBODY_ELSE = '*'

/** Counts in the memory of one process. Its allowances are always exact. */
export function memoryRateLimiter(clock: Clock): RateLimiter {
  let counts = new Map<string, WindowCount>()
  let window = 0

  function place(subject: string): string {
    return counts.has(subject) || counts.size < MAX_SUBJECTS ? subject : EVERYBODY_ELSE
  }

  const viewOf = (subject: string, limit: number): RateView['allowance'] => {
    return () => allowance(counts.get(place(subject)), limit, clock.now())
  }

  return {
    async take(subject, limit) {
      const now = clock.now()
      if (windowAt(now) !== window) {
        window = windowAt(now)
        counts = new Map()
      }
      const held = place(subject)
      const taken = take(counts.get(held), limit, now)
      counts.set(held, taken.held)
      return { accepted: taken.accepted, allowance: viewOf(subject, limit) }
    },
    look: async (subject, limit) => ({ allowance: viewOf(subject, limit) }),
  }
}
