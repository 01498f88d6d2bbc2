import { openLane, Place } from '../core/admission/lane.ts'
import type { Lane, LaneDecision, LaneLimits, LaneStatus } from '../core/admission/lane.ts'
import type { Admission, Decision, Ticket } from '../ports/admission.ts'
import type { AlarmClock } from '../ports/clock.ts'

/** How many callers of a lane hear their decision in one turn of the event loop. */
const callersPerTurn = 32

/** A longer delay makes a timer fire at once. After this one the timer is simply set again. */
const timerMsMax = 2 ** 31 - 1

type Decided = (decision: Decision, ticket: Ticket) => void

const closed: LaneDecision = Object.freeze({ kind: 'closed' })
const nowhere: Ticket = Object.freeze({ leave() {} })

/** Admission for one process: every lane and its queue live in memory. */
export function memoryAdmission(clock: AlarmClock): Admission {
  const desks = new Map<string, Desk>()
  let isClosed = false

  function openLaneDesk(lane: string, limits: LaneLimits): void {
    const desk = openDesk(limits, clock, () => {
      if (desks.get(lane) === desk) desks.delete(lane)
    })
    desks.set(lane, desk)
  }

  return {
    setLanes(lanes) {
      for (const [lane, desk] of desks) if (!lanes.has(lane)) desk.retire()
      for (const [lane, limits] of lanes) {
        const desk = desks.get(lane)
        if (desk !== undefined) desk.setLimits(limits)
        else if (!isClosed) openLaneDesk(lane, limits)
      }
    },
    enter(lane, cost, decided) {
      const desk = desks.get(lane)
      if (desk !== undefined) return desk.enter(cost, decided)
      decided(closed, nowhere)
      return nowhere
    },
    async status() {
      const lanes = new Map<string, LaneStatus>()
      for (const [lane, desk] of desks) lanes.set(lane, desk.status())
      return lanes
    },
    close() {
      isClosed = true
      for (const desk of desks.values()) desk.close()
    },
  }
}

type Desk = ReturnType<typeof openDesk>

/** A lane's state machine, its timer, and the callers that wait to hear their decision. */
function openDesk(initialLimits: LaneLimits, clock: AlarmClock, onVacant: () => void) {
  const outbox = openOutbox()
  const lane: Lane<Entry> = openLane(initialLimits, outbox.add)
  const expiry = expiryTimer(lane, clock, settled)
  let isRetired = false

  /** Runs after every event. The timer is set before any caller hears a decision, because a caller may enter again. */
  function settled(): void {
    expiry.set()
    outbox.deliver()
    if (isRetired && isVacant()) {
      expiry.stop()
      onVacant()
    }
  }

  function isVacant(): boolean {
    const { inFlightRequests, queueDepth } = lane.status()
    return inFlightRequests === 0 && queueDepth === 0
  }

  function leave(entry: Entry): void {
    entry.decided = undefined
    lane.leave(entry, clock.monotonic())
    settled()
  }

  return {
    setLimits(limits: LaneLimits): void {
      isRetired = false
      lane.setLimits(limits, clock.monotonic())
      settled()
    },
    retire(): void {
      isRetired = true
      settled()
    },
    enter(cost: number, decided: Decided): Ticket {
      const entry = new Entry(cost, decided, leave)
      const decision = isRetired ? closed : lane.arrive(entry, clock.monotonic())
      if (decision?.kind === 'admitted' && !outbox.isEmpty()) {
        // Others were admitted earlier and have not heard it yet: they reach the engine first.
        outbox.add(entry, decision)
      } else if (decision !== undefined) {
        entry.tell(decision)
      }
      settled()
      return entry
    },
    status: () => lane.status(),
    close(): void {
      lane.close()
      settled()
    },
  }
}

/** One entry into a lane: its place, its ticket, and the callback that hears the decision. */
class Entry extends Place implements Ticket {
  decided: Decided | undefined
  decision: LaneDecision | undefined = undefined
  nextToHear: Entry | undefined = undefined
  readonly #leave: (entry: Entry) => void

  constructor(cost: number, decided: Decided, leave: (entry: Entry) => void) {
    super(cost)
    this.decided = decided
    this.#leave = leave
  }

  /** Tells the caller at most once. If its callback throws, the caller cannot be trusted to leave: its place is freed. */
  tell(decision: LaneDecision): void {
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
function openOutbox() {
  let first: Entry | undefined
  let last: Entry | undefined
  let isBusy = false

  function add(entry: Entry, decision: LaneDecision): void {
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

/** One timer for a lane, set for the earliest deadline. */
function expiryTimer(lane: Lane<Entry>, clock: AlarmClock, settled: () => void) {
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

  function stop(): void {
    cancel?.()
    setForMs = Infinity
  }

  return { set, stop }
}
