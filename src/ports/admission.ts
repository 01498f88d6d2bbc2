import type { LaneDecision, LaneLimits, LaneStatus } from '../core/admission/lane.ts'

/** What becomes of a request that entered a lane. */
export type Decision =
  | LaneDecision
  /** Whatever coordinates the lanes cannot be reached. */
  | { readonly kind: 'unavailable' }

export interface LaneLoad extends LaneStatus {
  /** Of the request that has waited longest; 0 when none waits. */
  readonly oldestWaitMs: number
}

/** One caller's place in a lane, from arrival to the end of its engine call. */
export interface Ticket {
  /** Gives the place back: leaves the queue, or releases the charge. Only the first call counts. */
  leave(): void
}

/** Finite capacity, handed out first come, first served. A lane is one deployment of a model. */
export interface Admission {
  /**
   * Says which lanes there are from now on. New ones open. Open ones take their new limits, which evict nobody. Missing
   * ones refuse newcomers with `closed`, serve whoever is in them, and disappear with the last request.
   */
  setLanes(lanes: ReadonlyMap<string, LaneLimits>): void
  /**
   * Joins a lane with an estimated cost in tokens. `decided` is called exactly once, possibly before `enter`
   * returns, but never after `leave`. It gets the same ticket that `enter` returns.
   */
  enter(lane: string, cost: number, decided: (decision: Decision, ticket: Ticket) => void): Ticket
  /** Every open lane of the whole service, each at one instant. */
  status(): Promise<ReadonlyMap<string, LaneLoad>>
  /** This replica's part of it. */
  ownStatus(): ReadonlyMap<string, LaneStatus>
  /** From now on refuses everyone who waits or arrives with `closed`; admitted work goes on. */
  close(): void
}
