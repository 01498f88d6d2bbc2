import { openLane, type Lane, type LaneDecision, type LaneLimits } from '../../core/admission/lane.ts'
import type { Decision } from '../../ports/admission.ts'
import type { AlarmClock } from '../../ports/clock.ts'
import { expiryTimer } from '../expiry-timer.ts'
import { openOutbox } from '../outbox.ts'
import type { Promised } from './lane-scripts.ts'
import type { RemoteEntry } from './remote-entry.ts'

const MANY = Number.MAX_SAFE_INTEGER

export interface RoomEvents {
  /** A decision of the room: somebody waited too long, or is admitted within the share. */
  decided(entry: RemoteEntry, decision: LaneDecision): void
  /** The timer has let some go. */
  expired(): void
}

/**
 * Everybody whom a replica has in a lane. They wait by the rules of `lane.ts`, so that maximum waits are kept by the
 * replica's own clock. Whoever Redis admitted is here too, but does not count in the room while Redis counts.
 */
export function openWaitingRoom(clock: AlarmClock, limits: LaneLimits, events: RoomEvents) {
  const entries = new Map<string, RemoteEntry>()
  const outbox = openOutbox()
  const lane: Lane<RemoteEntry> = openLane(limits, events.decided)
  const expiry = expiryTimer(lane, clock, events.expired)

  return {
    find: (id: string) => entries.get(id),
    has: (id: string) => entries.has(id),
    all: (): readonly RemoteEntry[] => [...entries.values()],
    size: () => entries.size,

    oldestWaitMs(): number {
      const now = clock.monotonic()
      return now - (lane.oldestArrivalMs() ?? now)
    },

    /** What is in flight, by whomever it was admitted. */
    running(): Promised {
      let [requests, tokens] = [0, 0]
      for (const entry of entries.values()) {
        if (entry.isWaiting) continue
        requests += 1
        tokens += entry.cost
      }
      return { requests, tokens }
    },

    /** Decides at once, or lets the entry wait. */
    arrive(entry: RemoteEntry): LaneDecision | undefined {
      const decision = lane.arrive(entry, clock.monotonic())
      if (decision === undefined || decision.kind === 'admitted') entries.set(entry.id, entry)
      return decision
    },

    /** Redis has admitted it: it is still ours, but the room does not count it. */
    hold(entry: RemoteEntry): void {
      lane.leave(entry, clock.monotonic())
      entry.isHeld = true
    },

    /** The room has refused it already. */
    forget: (entry: RemoteEntry) => void entries.delete(entry.id),

    remove(entry: RemoteEntry): void {
      entries.delete(entry.id)
      lane.leave(entry, clock.monotonic())
    },

    /** From now on the room counts everything in flight, and keeps the order of those who wait. */
    countHeld(next: LaneLimits): void {
      const all = [...entries.values()]
      const held = all.filter(({ isHeld }) => isHeld)
      if (held.length === 0) return
      const waiting = all.filter(({ isWaiting }) => isWaiting)
      const nowMs = clock.monotonic()
      for (const entry of waiting) lane.leave(entry, nowMs)
      lane.setLimits({ ...next, tokenBudget: MANY, maxConcurrentRequests: MANY }, nowMs)
      for (const entry of held) {
        entry.isHeld = false
        lane.arrive(entry, nowMs)
      }
      lane.setLimits({ ...next, tokenBudget: MANY, maxConcurrentRequests: 0, maxQueueDepth: MANY }, nowMs)
      for (const entry of waiting) lane.arrive(entry, entry.arrivedAtMs)
    },

    setLimits: (next: LaneLimits) => lane.setLimits(next, clock.monotonic()),
    close: () => lane.close(),
    stop: () => expiry.stop(),

    /** Its caller hears the decision with the next `deliver`. */
    tell: (entry: RemoteEntry, decision: Decision) => outbox.add(entry, decision),

    /** The timer is set before any caller hears a decision, because a caller may enter again. */
    deliver(): void {
      expiry.set()
      outbox.deliver()
    },
  }
}

export type WaitingRoom = ReturnType<typeof openWaitingRoom>
