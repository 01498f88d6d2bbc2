import type { Allowance } from '../core/rate-window.ts'

/** Limits requests per minute: by workspace, and by address for callers without a valid key. */
export interface RateLimiter {
  /** Counts one request, unless the window is full. */
  take(subject: string, limit: number): Promise<RateDecision>
  /** Reads the allowance without counting a request. */
  look(subject: string, limit: number): Promise<RateView>
}

/** What is known about one subject's allowance. */
export interface RateView {
  /** Reads the allowance when the headers are sent. Never waits: a remote limiter answers with the last value it received. */
  allowance(): Allowance
}

export interface RateDecision extends RateView {
  /** False when the window has no room for the request. */
  readonly accepted: boolean
}
