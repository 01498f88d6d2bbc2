import type { Allowance } from '../core/rate-window.ts'

/** Requests per minute, for workspaces and for addresses that showed no good key. */
export interface RateLimiter {
  /** Counts one request; false where the window has no room for it. */
  take(subject: string, limit: number): Promise<boolean>
  /** What the headers say, as of now. */
  allowance(subject: string, limit: number): Allowance
}
