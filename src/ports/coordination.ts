/**
 * How this process agrees with other replicas. `alone`: there are none. `joined`: through Redis. `apart`: Redis cannot be
 * reached, and this replica serves its share. `stopped`: for so long that others may have been given the share, so
 * nobody new is admitted here.
 */
export type CoordinationState = 'alone' | 'joined' | 'apart' | 'stopped'

export interface Coordination {
  /** The name of this replica. */
  readonly replica: string
  state(): CoordinationState
  /** How many replicas there were when Redis was last heard, this one included. */
  replicas(): number
  /** All replicas by name, as they were at most a second ago. While Redis does not answer, only this one. */
  list(): Promise<readonly Replica[]>
  /**
   * Asks a replica to finish its work and leave; it hears of it within a second. False if there is none of this name.
   * Rejects while Redis does not answer, unless it is this one.
   */
  drain(name: string): Promise<boolean>
}

/** One process that serves. */
export interface Replica {
  readonly name: string
  readonly version: string
  /** Unix ms. */
  readonly startedAt: number
  /** Changes when Redis lost its data; null without Redis. */
  readonly epoch: string | null
  readonly inFlightRequests: number
  readonly queueDepth: number
  /** Bytes of its journal that are not in the database yet, and how long the oldest of them have waited. */
  readonly journalBytes: number
  readonly journalLagMs: number
  readonly isDraining: boolean
}
