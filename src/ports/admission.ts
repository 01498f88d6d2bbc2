import type { Decision, LaneLimits, LaneStatus } from '../core/admission/lane.ts'

/** One caller's place in a lane, from arrival to the end of its engine call. */
export interface Ticket {
  /** Gives the place back: leaves the queue, or releases the charge. Only the first call counts. */
  leave(): void
}

/** Finite capacity, handed out first come, first served. A lane is one deployment of a model. */
export interface Admission {
  /** Opens a lane, or changes the limits of an open one without evicting anybody. */
  setLimits(lane: string, limits: LaneLimits): void
  /** Closes a lane to newcomers of the catalog; it disappears when the last request has left. */
  retire(lane: string): void
  /**
   * Joins a lane with an estimated cost in tokens. `decided` is called exactly once, possibly before
   * `enter` returns, and never after `leave`.
   */
  enter(lane: string, cost: number, decided: (decision: Decision) => void): Ticket
  /** Every open lane at one instant. */
  status(): ReadonlyMap<string, LaneStatus>
  /** Refuses whoever waits or arrives from now on with `closed`; admitted work goes on. */
  close(): void
}
