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
  /** From now on the place is not preempted. False if it already was. */
  keep(): boolean
}

/** A request that wants a place in a lane. */
export interface LaneArrival {
  readonly lane: string
  readonly workspace: string
  /** The estimated cost in tokens. */
  readonly cost: number
  /** Only for batch places, which get what online requests leave idle. */
  readonly batch?: BatchArrival | undefined
}

export interface BatchArrival {
  /** Infinity: waits as long as it takes. */
  readonly maxWaitMs: number
  /**
   * Called at most once, after the admission and before `leave`: the place is needed for online requests. Abort the engine
   * call, and leave when it has ended.
   */
  preempted(): void
}

/** For a request that has no place. */
export const noTicket: Ticket = Object.freeze({ leave() {}, keep: () => true })

/** Allocates finite capacity first come, first served. A lane is one deployment of a model. */
export interface Admission {
  /**
   * Replaces the set of lanes. New lanes open. Lanes that are already open get their new limits, without evicting any
   * request. Lanes that are missing refuse new requests with `closed` and disappear when their last request has ended.
   */
  setLanes(lanes: ReadonlyMap<string, LaneLimits>): void
  /**
   * Joins a lane. `decided` is called exactly once, possibly before `enter` returns, but never after `leave`. It gets the
   * same ticket that `enter` returns.
   */
  enter(arrival: LaneArrival, decided: (decision: Decision, ticket: Ticket) => void): Ticket
  /** Every open lane of the whole service, each at one instant. */
  status(): Promise<ReadonlyMap<string, LaneLoad>>
  /** This replica's part of `status`. */
  ownStatus(): ReadonlyMap<string, LaneStatus>
  /** Refuses all waiting and later requests with `closed`; admitted requests continue. */
  close(): void
}
