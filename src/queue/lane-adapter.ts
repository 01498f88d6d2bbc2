import { Place, type Lane } from './lane.ts'
import type { LaneArrival, BatchArrival, Decision, Ticket } from './admission.ts'
import type { AlarmClock } from '../shared/clock.ts'

/** What every adapter of a lane has besides the state machine: its entries, an outbox for decisions, and a timer. */

/** How many callers of a lane are notified in one turn of the event loop. */
const callersPerTurn = 32

export type Decided = (decision: Decision, ticket: Ticket) => void

/** What an entry asks of the lane that it is in. */
export interface EntryOwner {
  leave(entry: Entry): void
  keep(entry: Entry): boolean
}

/** One entry into a lane: its place, its ticket, and the callback for the decision. */
export class Entry extends Place implements Ticket {
  decided: Decided | undefined
  decision: Decision | undefined = undefined
  nextInOutbox: Entry | undefined = undefined
  readonly #owner: EntryOwner
  readonly #batch: BatchArrival | undefined
  #isPreemptionDue = false

  constructor({ cost, workspace, batch }: LaneArrival, decided: Decided, owner: EntryOwner) {
    super(cost, workspace, batch ? 'batch' : 'online', batch?.maxWaitMs)
    this.decided = decided
    this.#owner = owner
    this.#batch = batch
  }

  /** Notifies the caller at most once. If the callback throws, the place is freed, because the caller may never leave. */
  notify(decision: Decision): void {
    const { decided } = this
    this.decided = undefined
    try {
      decided?.(decision, this)
      if (this.#isPreemptionDue) this.#batch?.preempted()
    } catch (error) {
      this.leave()
      throw error
    }
  }

  /** For a place in flight. The caller learns of its admission first. */
  preempt(): void {
    if (this.decided !== undefined) this.#isPreemptionDue = true
    else this.#batch?.preempted()
  }

  leave(): void {
    this.#owner.leave(this)
  }

  keep(): boolean {
    return this.tier === 'online' || this.#owner.keep(this)
  }
}

/**
 * Callers whose wait is over, in order. The lane decides for all of them at once, but only a few are notified per turn of
 * the event loop: what each does next (an engine call, a reply) costs a thousand times as much as the decision.
 */
export function openOutbox() {
  let first: Entry | undefined
  let last: Entry | undefined
  let isBusy = false

  function add(entry: Entry, decision: Decision): void {
    entry.decision = decision
    if (last === undefined) first = entry
    else last.nextInOutbox = entry
    last = entry
  }

  function take(): Entry | undefined {
    const entry = first
    if (entry === undefined) return undefined
    first = entry.nextInOutbox
    if (first === undefined) last = undefined
    // Otherwise a long stream would keep every entry admitted after it in memory.
    entry.nextInOutbox = undefined
    return entry
  }

  /** A callback may leave or enter a lane, and so add to the outbox. The turn under way delivers those additions too. */
  function deliver(): void {
    if (isBusy || first === undefined) return
    isBusy = true
    deliverTurn()
  }

  function deliverTurn(): void {
    for (let notified = 0; notified < callersPerTurn; notified += 1) {
      const entry = take()
      if (entry?.decision === undefined) break
      try {
        entry.notify(entry.decision)
      } catch (error) {
        // The event that made room did not cause the error, so it is rethrown as an uncaught exception.
        queueMicrotask(() => {
          throw error
        })
      }
    }
    if (first === undefined) isBusy = false
    else setImmediate(deliverTurn)
  }

  return { add, deliver, isEmpty: () => first === undefined }
}

/** Node fires a timer with a longer delay at once. After this delay the timer is set again. */
const timerMsMax = 2 ** 31 - 1

/** One timer for a lane, set for the earliest deadline. */
export function expiryTimer<P extends Place>(lane: Lane<P>, clock: AlarmClock, settled: () => void) {
  let cancel: (() => void) | undefined
  let setForMs = Infinity

  function set(): void {
    const deadlineMs = lane.nextDeadlineMs()
    // If the deadline has moved back, one early wake-up costs less than a new timer for every request.
    if (deadlineMs >= setForMs) return
    cancel?.()
    setForMs = deadlineMs
    cancel = clock.after(Math.min(Math.ceil(deadlineMs - clock.monotonic()), timerMsMax), fire)
  }

  function fire(): void {
    setForMs = Infinity
    lane.expire(clock.monotonic())
    settled()
  }

  return { set, stop: () => cancel?.() }
}
