import type { Clock } from '../../shared/clock.ts'

/** Limits requests per minute: by workspace, by key if it has a limit of its own, and by address without a valid key. */
export interface RateLimiter {
  /** Counts one request, for the subject and for its key or for neither, unless a window is full. */
  take(subject: RateSubject, limit: number, key?: KeyRate): Promise<RateDecision>
  /** Reads the allowance without counting a request. */
  peek(subject: RateSubject, limit: number): Promise<RateView>
}

/** The subject whose requests are counted. Anyone can call from many addresses, so these must not affect workspaces. */
export interface RateSubject {
  readonly kind: 'workspace' | 'address'
  /** The id of the workspace, or the address. */
  readonly id: string
}

/** A key with a limit of its own, within that of its workspace. */
export interface KeyRate {
  readonly id: string
  readonly limit: number
}

/** What is known about one subject's allowance. */
export interface RateView {
  /** Reads the allowance when the headers are sent: of the subject or of its key, whichever has less left. Never waits: a remote limiter returns the last value it received. */
  allowance(): Allowance
  /** Of the key, if it has a limit of its own. */
  allowanceOfKey(): Allowance | undefined
  /** Of the workspace or address. */
  allowanceOfSubject(): Allowance
}

export interface RateDecision extends RateView {
  /** False when a window has no room for the request. */
  readonly accepted: boolean
  /** Whether it is the window of the key that has no room. */
  readonly isKeyFull: boolean
  /** Seconds until the window ends, for Retry-After. */
  readonly secondsLeft: number
}

/**
 * Counts requests in windows of one minute on the wall clock, so that every replica has the same windows.
 * Pure: callers pass the time and keep the count.
 */
export const WINDOW_MS = 60_000

export interface WindowCount {
  readonly window: number
  readonly count: number
}

export interface Allowance {
  readonly limit: number
  readonly remaining: number
  /** Unix seconds at which the window ends. */
  readonly resetAt: number
}

export function windowAt(nowMs: number): number {
  return Math.floor(nowMs / WINDOW_MS)
}

/** Counts one request if the window has room for it. */
export function take(
  held: WindowCount | undefined,
  limit: number,
  nowMs: number,
): { readonly accepted: boolean; readonly held: WindowCount } {
  const window = windowAt(nowMs)
  const count = held?.window === window ? held.count : 0
  if (count >= limit) return { accepted: false, held: { window, count } }
  return { accepted: true, held: { window, count: count + 1 } }
}

export function allowance(held: WindowCount | undefined, limit: number, nowMs: number): Allowance {
  const window = windowAt(nowMs)
  const count = held?.window === window ? held.count : 0
  return { limit, remaining: Math.max(0, limit - count), resetAt: ((window + 1) * WINDOW_MS) / 1000 }
}

/** The allowance that ends first. */
export function tighter(one: Allowance, other: Allowance | undefined): Allowance {
  if (!other || other.remaining > one.remaining) return one
  return other.remaining < one.remaining || other.limit < one.limit ? other : one
}

export function viewBy(ofSubject: () => Allowance, ofKey: () => Allowance | undefined): RateView {
  return {
    allowance: () => tighter(ofSubject(), ofKey()),
    allowanceOfKey: ofKey,
    allowanceOfSubject: ofSubject,
  }
}

/** For Retry-After: 1 to 59, because several SDKs ignore 60, and retry immediately on 0. */
export function secondsLeft(nowMs: number): number {
  const left = WINDOW_MS - (nowMs % WINDOW_MS)
  return Math.min(59, Math.max(1, Math.ceil(left / 1000)))
}

/** Beyond this many addresses in one minute, new ones share a single count. */
const MAX_ADDRESSES = 100_000
const OTHER_ADDRESSES = '*'

/**
 * Counts in the memory of one process. Its allowances are always exact. Addresses are counted separately, so that no
 * number of unauthenticated callers affects a workspace. The operator bounds the number of workspaces.
 */
export function memoryRateLimiter(clock: Clock): RateLimiter {
  const counts = {
    workspace: windowCounts(Infinity),
    address: windowCounts(MAX_ADDRESSES),
    key: windowCounts(Infinity),
  }

  const viewOf = ({ kind, id }: RateSubject, limit: number, key: KeyRate | undefined): RateView =>
    viewBy(
      () => allowance(counts[kind].get(id), limit, clock.now()),
      () => key && allowance(counts.key.get(key.id), key.limit, clock.now()),
    )

  return {
    async take(subject, limit, key) {
      const { kind, id } = subject
      const now = clock.now()
      counts[kind].startWindow(windowAt(now))
      const taken = take(counts[kind].get(id), limit, now)
      let { accepted } = taken
      if (key && accepted) {
        counts.key.startWindow(windowAt(now))
        const ofKey = take(counts.key.get(key.id), key.limit, now)
        counts.key.set(key.id, ofKey.held)
        accepted = ofKey.accepted
      }
      if (accepted) counts[kind].set(id, taken.held)
      const isKeyFull = !accepted && taken.accepted
      return { accepted, isKeyFull, secondsLeft: secondsLeft(now), ...viewOf(subject, limit, key) }
    },
    peek: async (subject, limit) => viewOf(subject, limit, undefined),
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
