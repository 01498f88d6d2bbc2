import { allowance, take, windowAt, type WindowCount } from '../core/rate-window.ts'
import type { Clock } from '../ports/clock.ts'
import type { RateLimiter } from '../ports/rate-limit.ts'

/** Past this many subjects in one minute (addresses, mostly), newcomers share one count. */
const MAX_SUBJECTS = 100_000
const EVERYBODY_ELSE = '*'

export function memoryRateLimiter(clock: Clock): RateLimiter {
  let counts = new Map<string, WindowCount>()
  let window = 0

  function place(subject: string): string {
    return counts.has(subject) || counts.size < MAX_SUBJECTS ? subject : EVERYBODY_ELSE
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
      return taken.accepted
    },
    allowance: (subject, limit) => allowance(counts.get(place(subject)), limit, clock.now()),
  }
}
