import { Place } from '../core/admission/lane.ts'
import type { Decision, Ticket } from '../ports/admission.ts'

/** How many callers of a lane hear their decision in one turn of the event loop. */
const callersPerTurn = 32

export type Decided = (decision: Decision, ticket: Ticket) => void

/** One entry into a lane: its place, its ticket, and the callback that hears the decision. */
export class Entry extends Place implements Ticket {
  decided: Decided | undefined
  decision: Decision | undefined = undefined
  nextToHear: Entry | undefined = undefined
  readonly #leave: (entry: Entry) => void

  constructor(cost: number, decided: Decided, leave: (entry: Entry) => void) {
    super(cost)
    this.decided = decided
    this.#leave = leave
  }

  /** Tells the caller at most once. If its callback throws, the caller cannot be trusted to leave: its place is freed. */
  tell(decision: Decision): void {
    const { decided } = this
    this.decided = undefined
    try {
      decided?.(decision, this)
    } catch (error) {
      this.leave()
      throw error
    }
  }

  leave(): void {
    this.#leave(this)
  }
}

/**
 * Callers whose wait is over, in order. The lane decides for all of them at once, but only a few hear it per turn of
 * the event loop: what each does next (an engine call, a reply) costs a thousand times the decision.
 */
export function openOutbox() {
  let first: Entry | undefined
  let last: Entry | undefined
  let isBusy = false

  function add(entry: Entry, decision: Decision): void {
    entry.decision = decision
    if (last === undefined) first = entry
    else last.nextToHear = entry
    last = entry
  }

  function take(): Entry | undefined {
    const entry = first
    if (entry === undefined) return undefined
    first = entry.nextToHear
    if (first === undefined) last = undefined
    // Otherwise a long stream would keep everyone admitted after it in memory.
    entry.nextToHear = undefined
    return entry
  }

  /** A caller may leave or enter when it hears its decision. That may add to the outbox, and the same turn goes on. */
  function deliver(): void {
    if (isBusy || first === undefined) return
    isBusy = true
    deliverTurn()
  }

  function deliverTurn(): void {
    for (let told = 0; told < callersPerTurn; told += 1) {
      const entry = take()
      if (entry?.decision === undefined) break
      try {
        entry.tell(entry.decision)
      } catch (error) {
        // Whoever made room is not to blame, so this becomes an uncaught exception of its own.
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
