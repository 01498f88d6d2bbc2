import type { Allowance } from './rate-window.ts'

/** Limits requests per minute: by workspace, and by address for callers without a valid key. */
export interface RateLimiter {
  /** Counts one request, unless the window is full. */
  take(subject: RateSubject, limit: number): Promise<RateDecision>
  /** Reads the allowance without counting a request. */
  peek(subject: RateSubject, limit: number): Promise<RateView>
}

/** The subject whose requests are counted. Anyone can call from many addresses, so these must not affect workspaces. */
export interface RateSubject {
  readonly kind: 'workspace' | 'address'
  /** The id of the workspace, or the address. */
  readonly id: string
}

/** What is known about one subject's allowance. */
export interface RateView {
  /** Reads the allowance when the headers are sent. Never waits: a remote limiter returns the last value it received. */
  allowance(): Allowance
}

export interface RateDecision extends RateView {
  /** False when the window has no room for the request. */
  readonly accepted: boolean
  /** Seconds until the window ends, for Retry-After. */
  readonly secondsLeft: number
}
