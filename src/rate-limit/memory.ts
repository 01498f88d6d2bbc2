import { allowance, secondsLeft, take, windowAt, type WindowCount } from '../core/rate-window.ts'
import type { Clock } from '../ports/clock.ts'
import type { RateLimiter, RateSubject, RateView } from '../ports/rate-limit.ts'

/** Beyond this many addresses in one minute, new ones share a single count. */
const MAX_ADDRESSES = 100_000
const EVERYBODY_ELSE = '*'

/**
 * Counts in the memory of one process. Its allowances are always exact. Addresses have counts of their own, so that no
 * number of strangers affects a workspace; the workspaces themselves are as many as the operator has created.
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
    look: async (subject, limit) => ({ allowance: viewOf(subject, limit) }),
  }
}

/** The counts of one window, for at most `max` ids and one for everybody else. */
function windowCounts(max: number) {
  let counts = new Map<string, WindowCount>()
  let current = 0
  const place = (id: string): string => (counts.has(id) || counts.size < max ? id : EVERYBODY_ELSE)
  return {
    /** Forgets the counts of earlier windows. */
    startWindow(window: number): void {
      if (window !== current) counts = new Map()
      current = window
    },
    get: (id: string): WindowCount | undefined => counts.get(place(id)),
    set: (id: string, count: WindowCount): void => void counts.set(place(id), count),
  }
}

/** Gives every address its own count, until there are too many of them in one minute. */
export function knownAddresses(max = MAX_ADDRESSES) {
  let known = new Set<string>()
  let current = 0
  return {
    place(address: string, window: number): string {
      if (window !== current) known = new Set()
      current = window
      if (!known.has(address) && known.size >= max) return EVERYBODY_ELSE
      known.add(address)
      return address
    },
  }
}
