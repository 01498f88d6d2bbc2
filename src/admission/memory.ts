import { openLane } from '../core/admission/lane.ts'
import type { Lane, LaneDecision, LaneLimits, LaneStatus } from '../core/admission/lane.ts'
import type { Admission, LaneLoad, Ticket } from '../ports/admission.ts'
import type { AlarmClock } from '../ports/clock.ts'
import { expiryTimer } from './expiry-timer.ts'
import { Entry, openOutbox, type Decided } from './outbox.ts'

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

  function ownStatus(): ReadonlyMap<string, LaneStatus> {
    return new Map([...desks].map(([lane, desk]) => [lane, desk.status()]))
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
    status: async () => new Map([...desks].map(([lane, desk]) => [lane, desk.load()])),
    ownStatus,
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
    load(): LaneLoad {
      const now = clock.monotonic()
      return { ...lane.status(), oldestWaitMs: now - (lane.oldestArrivalMs() ?? now) }
    },
    close(): void {
      lane.close()
      settled()
    },
  }
}
