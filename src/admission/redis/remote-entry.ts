import { Entry, type Decided } from '../outbox.ts'
import type { KnownPlace } from './lane-scripts.ts'

/** One entry, and how Redis knows it. */
export class RemoteEntry extends Entry {
  readonly id: string
  /** Its place in the order of all replicas, once Redis has given it one. */
  number: string | undefined = undefined
  isAcknowledging = false
  /** Admitted by Redis. Whoever was admitted here is in flight in the waiting room. */
  isHeld = false

  constructor(id: string, cost: number, decided: Decided, leave: (entry: RemoteEntry) => void) {
    super(cost, decided, leave as (entry: Entry) => void)
    this.id = id
  }

  get isWaiting(): boolean {
    return this.state === 'queued'
  }

  /** What Redis is told of it when its replica joins. */
  known(nowMs: number, maxWaitMs: number): KnownPlace {
    const { id, cost, number } = this
    if (!this.isWaiting) return { id, cost, state: 'in_flight' }
    const ageMs = nowMs - this.arrivedAtMs
    return { id, cost, state: 'queued', number, ageMs, leftMs: maxWaitMs - ageMs }
  }
}
