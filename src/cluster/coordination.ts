/**
 * How this process coordinates with other replicas. `alone`: there are no others. `joined`: connected through Redis.
 * `apart`: partitioned from Redis, so this replica serves its own allotment. `stopped`: partitioned for so long that other
 * replicas may have been given its allotment, so it admits no new requests.
 */
export type CoordinationState = 'alone' | 'joined' | 'apart' | 'stopped'

export interface Coordination {
  /** The name of this replica. */
  readonly replica: string
  state(): CoordinationState
  /** The number of replicas when Redis last answered, including this one. */
  replicas(): number
  /** All replicas, ordered by name, at most a second old. Only this one while Redis does not answer. */
  list(): Promise<readonly Replica[]>
  /**
   * Asks a replica to finish its work and leave. It receives this within a second. Resolves with false if there is no
   * replica of this name. Rejects while Redis does not answer, unless the name is this replica's own.
   */
  drain(name: string): Promise<boolean>
}

/** One serving process. */
export interface Replica {
  readonly name: string
  readonly version: string
  /** Unix ms. */
  readonly startedAt: number
  /** Changes when Redis loses its data; null without Redis. */
  readonly epoch: string | null
  readonly inFlightRequests: number
  readonly queueDepth: number
  /** Bytes of its journal that are not in the database yet, and how long the oldest of them have waited. */
  readonly journalBytes: number
  readonly journalLagMs: number
  readonly isDraining: boolean
}
