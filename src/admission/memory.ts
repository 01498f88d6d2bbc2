import { openLane, Place } from '../core/admission/lane.ts'
import type { Decision, Lane, LaneLimits, LaneStatus } from '../core/admission/lane.ts'
import type { Admission, Ticket } from '../ports/admission.ts'
import type { Clock } from '../ports/clock.ts'

/** How many callers of a lane hear their decision in one turn of the event loop. */
const callersPerTurn = 32

/** A longer delay makes setTimeout fire at once; the timer is simply set again. */
const timerMsMax = 2 ** 31 - 1

const closed: Decision = Object.freeze({ kind: 'closed' })
const nowhere: Ticket = Object.freeze({ leave() {} })

/** Admission for one process: every lane and its queue live in memory. */
export function memoryAdmission(clock: Clock): Admission {
  const desks = new Map<string, Desk>()
  let isClosed = false

  return {
    setLimits(lane, limits) {
      const open = desks.get(lane)
      if (open !== undefined) return open.setLimits(limits)
      if (isClosed) return
      const desk = openDesk(limits, clock, () => {
        if (desks.get(lane) === desk) desks.delete(lane)
      })
      desks.set(lane, desk)
    },
    retire(lane) {
      desks.get(lane)?.retire()
    },
    enter(lane, cost, decided) {
      const desk = desks.get(lane)
      if (desk !== undefined) return desk.enter(cost, decided)
      decided(closed)
      return nowhere
    },
    status() {
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

/** A lane's state machine together with its timer and with the callers that wait to hear their decision. */
function openDesk(initialLimits: LaneLimits, clock: Clock, onVacant: () => void) {
  const outbox = openOutbox()
  const lane: Lane<Visit> = openLane(initialLimits, outbox.add)
  const expiry = expiryTimer(lane, clock, settled)
  let isRetired = false

  /** After every event. The timer is set before any caller is told, for a caller may come back in. */
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

  function leave(visit: Visit): void {
    visit.decided = undefined
    lane.leave(visit, clock.monotonic())
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
    enter(cost: number, decided: (decision: Decision) => void): Ticket {
      const visit = new Visit(cost, decided, leave)
      const decision = isRetired ? closed : lane.arrive(visit, clock.monotonic())
      if (decision?.kind === 'admitted' && !outbox.isEmpty()) {
        // Others were admitted before and have not heard it yet: they reach the engine first.
        outbox.add(visit, decision)
      } else if (decision !== undefined) {
        visit.tell(decision)
      }
      settled()
      return visit
    },
    status: () => lane.status(),
    close(): void {
      lane.close()
      settled()
    },
  }
}

/** A caller in a lane: its place, its ticket, and how to reach it. */
class Visit extends Place implements Ticket {
  decided: ((decision: Decision) => void) | undefined
  decision: Decision | undefined = undefined
  nextToHear: Visit | undefined = undefined
  readonly #leave: (visit: Visit) => void

  constructor(cost: number, decided: (decision: Decision) => void, leave: (visit: Visit) => void) {
    super(cost)
    this.decided = decided
    this.#leave = leave
  }

  /** Once at most. A caller that fails to take its decision cannot be trusted to give its place back. */
  tell(decision: Decision): void {
    const { decided } = this
    this.decided = undefined
    try {
      decided?.(decision)
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
 * Callers whose wait has ended, in order. The lane decides for all of them at once; they hear it a few per turn of
 * the event loop, because what each does next (an engine call, a reply) costs a thousand times the decision.
 */
function openOutbox() {
  let first: Visit | undefined
  let last: Visit | undefined
  let isBusy = false

  function add(visit: Visit, decision: Decision): void {
    visit.decision = decision
    if (last === undefined) first = visit
    else last.nextToHear = visit
    last = visit
  }

  function take(): Visit | undefined {
    const visit = first
    if (visit === undefined) return undefined
    first = visit.nextToHear
    if (first === undefined) last = undefined
    // A long stream must not keep all who were admitted after it in memory.
    visit.nextToHear = undefined
    return visit
  }

  /** Callers may leave or enter while they are told: that adds to the outbox, and the same turn goes on with it. */
  function deliver(): void {
    if (isBusy || first === undefined) return
    isBusy = true
    deliverTurn()
  }

  function deliverTurn(): void {
    for (let told = 0; told < callersPerTurn; told += 1) {
      const visit = take()
      if (visit?.decision === undefined) break
      try {
        visit.tell(visit.decision)
      } catch (error) {
        // Not the fault of whoever made room: it surfaces as an uncaught exception of its own.
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

/** One timer for a lane, set for the earliest deadline. It does not keep the process alive. */
function expiryTimer(lane: Lane<Visit>, clock: Clock, settled: () => void) {
  let timer: NodeJS.Timeout | undefined
  let setForMs = Infinity

  function set(): void {
    const deadlineMs = lane.nextDeadlineMs()
    // A deadline that has moved back costs one early wake-up, which is cheaper than a new timer for every request.
    if (deadlineMs >= setForMs) return
    clearTimeout(timer)
    setForMs = deadlineMs
    const delayMs = Math.min(Math.ceil(deadlineMs - clock.monotonic()), timerMsMax)
    timer = setTimeout(fire, delayMs).unref()
  }

  function fire(): void {
    setForMs = Infinity
    lane.expire(clock.monotonic())
    settled()
  }

  function stop(): void {
    clearTimeout(timer)
    setForMs = Infinity
  }

  return { set, stop }
}
