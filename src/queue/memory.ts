import { openLane } from './lane.ts'
import type { Lane, LaneDecision, LaneLimits, LaneStatus } from './lane.ts'
import { noTicket, type Admission, type LaneArrival, type LaneLoad, type Ticket } from './admission.ts'
import type { AlarmClock } from '../shared/clock.ts'
import { expiryTimer, Entry, openOutbox, type Decided, type EntryOwner } from './lane-adapter.ts'

const closed: LaneDecision = Object.freeze({ kind: 'closed' })

/** Admission for one process: every lane and its queue live in memory. */
export function memoryAdmission(clock: AlarmClock): Admission {
  const openLanes = new Map<string, MemoryLane>()
  let isClosed = false

  function addLane(name: string, limits: LaneLimits): void {
    const lane = openMemoryLane(limits, clock, () => {
      if (openLanes.get(name) === lane) openLanes.delete(name)
    })
    openLanes.set(name, lane)
  }

  function ownStatus(): ReadonlyMap<string, LaneStatus> {
    return new Map([...openLanes].map(([name, lane]) => [name, lane.status()]))
  }

  return {
    setLanes(lanes) {
      for (const [name, lane] of openLanes) if (!lanes.has(name)) lane.retire()
      for (const [name, limits] of lanes) {
        const lane = openLanes.get(name)
        if (lane !== undefined) lane.setLimits(limits)
        else if (!isClosed) addLane(name, limits)
      }
    },
    enter(arrival, decided) {
      const lane = openLanes.get(arrival.lane)
      if (lane !== undefined) return lane.enter(arrival, decided)
      decided(closed, noTicket)
      return noTicket
    },
    status: async () => new Map([...openLanes].map(([name, lane]) => [name, lane.load()])),
    ownStatus,
    close() {
      isClosed = true
      for (const lane of openLanes.values()) lane.close()
    },
  }
}

type MemoryLane = ReturnType<typeof openMemoryLane>

/** A lane's state machine, its timer, and the callers that wait for their decision. */
function openMemoryLane(initialLimits: LaneLimits, clock: AlarmClock, onVacant: () => void) {
  const outbox = openOutbox()
  let preempted: Entry[] = []
  const lane: Lane<Entry> = openLane(initialLimits, outbox.add, (entry) => preempted.push(entry))
  const expiry = expiryTimer(lane, clock, settled)
  let isRetired = false

  /** Runs after every event. Sets the timer before it notifies any caller, because a caller may enter again from its callback. */
  function settled(): void {
    expiry.set()
    outbox.deliver()
    if (preempted.length > 0) preemptNow()
    if (isRetired && isVacant()) {
      expiry.stop()
      onVacant()
    }
  }

  /** A caller may leave from its callback, and so make others give way. One that has left meanwhile need not know. */
  function preemptNow(): void {
    const entries = preempted
    preempted = []
    for (const entry of entries) if (entry.state === 'in_flight') entry.preempt()
  }

  function isVacant(): boolean {
    const { inFlightRequests, queueDepth, batch } = lane.status()
    return inFlightRequests === 0 && queueDepth === 0 && batch.queueDepth === 0
  }

  const owner: EntryOwner = {
    leave(entry) {
      entry.decided = undefined
      lane.leave(entry, clock.monotonic())
      settled()
    },
    keep: (entry) => lane.keep(entry),
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
    enter(arrival: LaneArrival, decided: Decided): Ticket {
      const entry = new Entry(arrival, decided, owner)
      const decision = isRetired ? closed : lane.arrive(entry, clock.monotonic())
      if (decision?.kind === 'admitted' && !outbox.isEmpty()) {
        // Callers that were admitted earlier but not notified yet must reach the engine first.
        outbox.add(entry, decision)
      } else if (decision !== undefined) {
        entry.notify(decision)
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
