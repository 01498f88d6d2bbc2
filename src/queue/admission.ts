import type { LaneDecision, LaneLimits, LaneStatus } from './lane.ts'

/** The outcome of entering a lane. */
export type Decision =
  | LaneDecision
  /** Redis cannot be reached, and this replica has no allotment left to serve. */
  | { readonly kind: 'unavailable' }

export interface LaneLoad extends LaneStatus {
  /** How long the head of the queue has waited; 0 when the queue is empty. */
  readonly oldestWaitMs: number
}

/** One caller's place in a lane, from arrival to the end of its engine call. */
export interface Ticket {
  /** Leaves the queue, or releases the charge. Only the first call has an effect. */
  leave(): void
}

/** Allocates finite capacity first come, first served. A lane is one deployment of a model. */
export interface Admission {
  /**
   * Replaces the set of lanes. New lanes open. Lanes that are already open get their new limits, without evicting any
   * request. Lanes that are missing refuse new requests with `closed` and disappear when their last request has ended.
   */
  setLanes(lanes: ReadonlyMap<string, LaneLimits>): void
  /**
   * Joins a lane for a workspace, with an estimated cost in tokens. `decided` is called exactly once, possibly before `enter`
   * returns, but never after `leave`. It gets the same ticket that `enter` returns.
   */
  enter(lane: string, workspace: string, cost: number, decided: (decision: Decision, ticket: Ticket) => void): Ticket
  /** Every open lane of the whole service, each at one instant. */
  status(): Promise<ReadonlyMap<string, LaneLoad>>
  /** This replica's part of `status`. */
  ownStatus(): ReadonlyMap<string, LaneStatus>
  /** Refuses all waiting and later requests with `closed`; admitted requests continue. */
  close(): void
}
