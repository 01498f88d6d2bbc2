import { Entry, type Decided } from '../lane-adapter.ts'
import type { LaneArrival } from '../admission.ts'
import type { PlaceSnapshot } from './lane-scripts.ts'

interface RemoteEntryOwner {
  leave(entry: RemoteEntry): void
  keep(entry: RemoteEntry): boolean
}

/** A request of this replica, with its id and position in Redis. */
export class RemoteEntry extends Entry {
  readonly id: string
  /** Its position in the queue of all replicas, once Redis has assigned one. */
  number: string | undefined = undefined
  isAcknowledging = false
  /** Redis admitted and counts it. A request that this replica admitted is counted in the local queue. */
  isCountedAtRedis = false

  constructor(id: string, arrival: LaneArrival, decided: Decided, owner: RemoteEntryOwner) {
    super(arrival, decided, owner)
    this.id = id
  }

  get isWaiting(): boolean {
    return this.state === 'queued'
  }

  /** What the replica sends to Redis about this request when it joins. */
  snapshot(nowMs: number, maxWaitMs: number): PlaceSnapshot {
    const { id, cost, number } = this
    if (!this.isWaiting) return { id, cost, state: 'in_flight' }
    const ageMs = nowMs - this.arrivedAtMs
    return { id, cost, state: 'queued', number, ageMs, leftMs: maxWaitMs - ageMs }
  }
}
