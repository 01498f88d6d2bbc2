import type { Clock } from '../../shared/clock.ts'

/**
 * Limits requests per minute: by workspace, by key if it has a limit of its own, and by address without a valid key.
 * Workspaces and keys may also have a limit of tokens per minute.
 */
export interface RateLimiter {
  /** Counts one request, for the subject and for its key or for neither, unless a window is full. */
  take(subject: RateSubject, limit: number, key?: KeyRate, tokens?: TokenRates): Promise<RateDecision>
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

/**
 * Tokens per minute. These limits are soft: a request is accepted while a token is left, because only a settled request shows
 * how many it took.
 */
export interface TokenRates {
  /** Of the workspace. undefined: only its key has a limit. */
  readonly limit: number | undefined
  readonly key: KeyRate | undefined
  /** False for a request that takes no tokens: it is accepted in any case. */
  readonly isChecked: boolean
}

/** What is known about one subject's allowance. */
export interface RateView {
  /** Reads the allowance when the headers are sent: of the subject or of its key, whichever has less left. Never waits: a remote limiter returns the last value it received. */
  allowance(): Allowance
  /** Of the key, if it has a limit of its own. */
  allowanceOfKey(): Allowance | undefined
  /** Of the workspace or address. */
  allowanceOfSubject(): Allowance
  /** undefined if neither the workspace nor the key has a limit of tokens. */
  readonly tokens: TokenView | undefined
}

export interface TokenView {
  allowanceOfKey(): Allowance | undefined
  allowanceOfSubject(): Allowance | undefined
  /** Counts the tokens of a settled request in the current minute, even if that exceeds the limit. Never rejects. */
  spend(count: number): Promise<void>
}

export interface RateDecision extends RateView {
  /** The window without room for the request. undefined: the request was counted. */
  readonly full: FullWindow | undefined
  /** Seconds until the window ends, for Retry-After. */
  readonly secondsLeft: number
}

export interface FullWindow {
  readonly unit: 'requests' | 'tokens'
  readonly isOfKey: boolean
  readonly limit: number
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

export function viewBy(
  ofSubject: () => Allowance,
  ofKey: () => Allowance | undefined,
  tokens: TokenView | undefined,
): RateView {
  return {
    allowance: () => tighter(ofSubject(), ofKey()),
    allowanceOfKey: ofKey,
    allowanceOfSubject: ofSubject,
    tokens,
  }
}

/** The first window that has no room for a request. */
export function fullWindow(view: RateView, tokens: TokenRates | undefined): FullWindow | undefined {
  const spent = tokens?.isChecked ? view.tokens : undefined
  const windows = [
    { unit: 'requests', isOfKey: false, allowance: view.allowanceOfSubject() },
    { unit: 'requests', isOfKey: true, allowance: view.allowanceOfKey() },
    { unit: 'tokens', isOfKey: false, allowance: spent?.allowanceOfSubject() },
    { unit: 'tokens', isOfKey: true, allowance: spent?.allowanceOfKey() },
  ] as const
  const full = windows.find(({ allowance: left }) => left?.remaining === 0)
  return full?.allowance && { unit: full.unit, isOfKey: full.isOfKey, limit: full.allowance.limit }
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
    tokens: windowCounts(Infinity),
    keyTokens: windowCounts(Infinity),
  }

  function spend(of: keyof typeof counts, id: string, spent: number): void {
    const window = windowAt(clock.now())
    counts[of].startWindow(window)
    counts[of].set(id, { window, count: (counts[of].get(id)?.count ?? 0) + spent })
  }

  const tokenView = (id: string, { limit, key }: TokenRates): TokenView => ({
    allowanceOfSubject: () => (limit === undefined ? undefined : allowance(counts.tokens.get(id), limit, clock.now())),
    allowanceOfKey: () => key && allowance(counts.keyTokens.get(key.id), key.limit, clock.now()),
    async spend(spent) {
      if (limit !== undefined) spend('tokens', id, spent)
      if (key) spend('keyTokens', key.id, spent)
    },
  })

  const viewOf = ({ kind, id }: RateSubject, limit: number, key?: KeyRate, tokens?: TokenRates): RateView =>
    viewBy(
      () => allowance(counts[kind].get(id), limit, clock.now()),
      () => key && allowance(counts.key.get(key.id), key.limit, clock.now()),
      tokens && tokenView(id, tokens),
    )

  return {
    async take(subject, limit, key, tokens) {
      const { kind, id } = subject
      const now = clock.now()
      const view = viewOf(subject, limit, key, tokens)
      counts[kind].startWindow(windowAt(now))
      if (key) counts.key.startWindow(windowAt(now))
      const full = fullWindow(view, tokens)
      if (!full) {
        counts[kind].set(id, take(counts[kind].get(id), limit, now).held)
        if (key) counts.key.set(key.id, take(counts.key.get(key.id), key.limit, now).held)
      }
      return { full, secondsLeft: secondsLeft(now), ...view }
    },
    peek: async (subject, limit) => viewOf(subject, limit),
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
