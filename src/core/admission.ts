/** The four controls of a lane (SPEC 8.4). */
export interface LaneLimits {
  readonly tokenBudget: number
  readonly maxConcurrentRequests: number
  readonly maxQueueDepth: number
  readonly maxWaitMs: number
}

export interface LaneStatus {
  readonly limits: LaneLimits
  readonly inFlightRequests: number
  readonly committedTokens: number
  readonly queueDepth: number
}

/** What becomes of an arrival. A caller that leaves first gets none. */
export type Decision =
  | { readonly kind: 'admitted'; readonly waitMs: number }
  | { readonly kind: 'queue_full' }
  | { readonly kind: 'overloaded' }
  | { readonly kind: 'too_large' }
  | { readonly kind: 'closed' }
