import { Entry, type Decided } from '../lane-adapter.ts'
import type { LaneArrival } from '../admission.ts'
import type { PlaceSnapshot } from './lane-scripts.ts'

interface RemoteEntryOwner {
  leave(entry: RemoteEntry): void
  keep(entry: RemoteEntry): boolean
  readonly leaseMs: number
}

/** A batch place that may not wait still has to leave time for Redis to answer. */
function withTimeToAnswer(arrival: LaneArrival, leaseMs: number): LaneArrival {
  return arrival.batch?.maxWaitMs === 0 ? { ...arrival, batch: { ...arrival.batch, maxWaitMs: leaseMs } } : arrival
}

/** A request of this replica, with its id and position in Redis. */
export class RemoteEntry extends Entry {
  readonly id: string
  /** Its position in the queue of all replicas, once Redis has assigned one. */
  number: string | undefined = undefined
  isAcknowledging = false
  /** Redis admitted and counts it. A request that this replica admitted is counted in the local queue. */
  isCountedAtRedis = false
  /** Of a batch place in flight. This replica decides: once the answer has begun, the place does not give way any more. */
  fate: 'in_flight' | 'kept' | 'preempted' = 'in_flight'
  startedAtMs = 0
  /** How long a batch place may wait in Redis. */
  readonly redisWaitMs: number

  constructor(id: string, arrival: LaneArrival, decided: Decided, owner: RemoteEntryOwner) {
    super(withTimeToAnswer(arrival, owner.leaseMs), decided, owner)
    this.id = id
    this.redisWaitMs = arrival.batch?.maxWaitMs ?? Infinity
  }

  get isWaiting(): boolean {
    return this.state === 'queued'
  }

  /** What the replica sends to Redis about this request when it joins. */
  snapshot(nowMs: number, maxWaitMs: number): PlaceSnapshot {
    const { id, cost, number } = this
    const ageMs = nowMs - this.arrivedAtMs
    const isBatch = this.tier === 'batch'
    if (this.isWaiting) {
      const leftMs = (isBatch ? this.maxWaitMs : maxWaitMs) - ageMs
      return { id, cost, state: 'queued', number, ageMs, leftMs }
    }
    if (!isBatch) return { id, cost, state: 'in_flight' }
    return { id, cost, state: this.fate, startedMsAgo: nowMs - this.startedAtMs }
  }
}
