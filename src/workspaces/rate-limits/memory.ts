import { allowance, secondsLeft, take, windowAt, type WindowCount } from './rate-window.ts'
import type { Clock } from '../../shared/clock.ts'
import type { RateLimiter, RateSubject, RateView } from './rate-limit.ts'

/** Beyond this many addresses in one minute, new ones share a single count. */
const MAX_ADDRESSES = 100_000
const OTHER_ADDRESSES = '*'

/**
 * Counts in the memory of one process. Its allowances are always exact. Addresses are counted separately, so that no
 * number of unauthenticated callers affects a workspace. The operator bounds the number of workspaces.
 */
export function memoryRateLimiter(clock: Clock): RateLimiter {
  const counts = { workspace: windowCounts(Infinity), address: windowCounts(MAX_ADDRESSES) }

  const viewOf = ({ kind, id }: RateSubject, limit: number): RateView['allowance'] => {
    return () => allowance(counts[kind].get(id), limit, clock.now())
  }

  return {
    async take(subject, limit) {
      const { kind, id } = subject
      const now = clock.now()
      counts[kind].startWindow(windowAt(now))
      const taken = take(counts[kind].get(id), limit, now)
      counts[kind].set(id, taken.held)
      return { accepted: taken.accepted, secondsLeft: secondsLeft(now), allowance: viewOf(subject, limit) }
    },
    peek: async (subject, limit) => ({ allowance: viewOf(subject, limit) }),
  }
}

/** The counts of one window, for at most `max` ids, and one count for all others. */
function windowCounts(max: number) {
  let counts = new Map<string, WindowCount>()
  let current = 0
  const place = (id: string): string => (counts.has(id) || counts.size < max ? id : OTHER_ADDRESSES)
  return {
    /** Drops the counts of earlier windows. */
    startWindow(window: number): void {
      if (window !== current) counts = new Map()
      current = window
    },
    get: (id: string): WindowCount | undefined => counts.get(place(id)),
    set: (id: string, count: WindowCount): void => void counts.set(place(id), count),
  }
}

/** Gives every address its own count, until there are too many in one minute. */
export function knownAddresses(max = MAX_ADDRESSES) {
  let known = new Set<string>()
  let current = 0
  return {
    place(address: string, window: number): string {
      if (window !== current) known = new Set()
      current = window
      if (!known.has(address) && known.size >= max) return OTHER_ADDRESSES
      known.add(address)
      return address
    },
  }
}
