import { openLane, type Lane, type LaneDecision, type LaneLimits, type LaneStatus } from '../lane.ts'
import type { Decision } from '../admission.ts'
import type { AlarmClock } from '../../shared/clock.ts'
import { expiryTimer, openOutbox } from '../lane-adapter.ts'
import type { Promised } from './lane-scripts.ts'
import type { RemoteEntry } from './remote-entry.ts'

const UNLIMITED = Number.MAX_SAFE_INTEGER

export interface LocalQueueEvents {
  /** The local queue has decided: a wait expired, or a request was admitted within the allotment. */
  decided(entry: RemoteEntry, decision: LaneDecision): void
  /** The timer has expired some waits. */
  expired(): void
}

/**
 * All requests that a replica has in a lane, waiting or in flight. They wait by the rules of `lane.ts`, so that the
 * replica's own clock enforces maximum waits. Requests that Redis admitted are here too, but Redis counts them, not the
 * local lane.
 */
export function openLocalQueue(clock: AlarmClock, limits: LaneLimits, events: LocalQueueEvents) {
  const entries = new Map<string, RemoteEntry>()
  const outbox = openOutbox()
  const preempted: RemoteEntry[] = []
  const lane: Lane<RemoteEntry> = openLane(limits, events.decided, (entry) => {
    entry.fate = 'preempted'
    preempted.push(entry)
  })
  const expiry = expiryTimer(lane, clock, events.expired)

  function load(): Omit<LaneStatus, 'limits'> {
    const all = { inFlightRequests: 0, committedTokens: 0, queueDepth: 0 }
    const batch = { ...all }
    for (const entry of entries.values()) {
      const isBatch = entry.tier === 'batch'
      if (entry.isWaiting) (isBatch ? batch : all).queueDepth += 1
      else {
        charge(all, entry)
        if (isBatch) charge(batch, entry)
      }
    }
    return { ...all, batch }
  }

  function charge(load: { inFlightRequests: number; committedTokens: number }, { cost }: RemoteEntry): void {
    load.inFlightRequests += 1
    load.committedTokens += cost
  }

  return {
    find: (id: string) => entries.get(id),
    has: (id: string) => entries.has(id),
    all: (): readonly RemoteEntry[] => [...entries.values()],
    size: () => entries.size,

    oldestWaitMs(): number {
      const now = clock.monotonic()
      return now - (lane.oldestArrivalMs() ?? now)
    },

    /** Everything in flight, whether Redis or this replica admitted it. */
    running(): Promised {
      const { inFlightRequests: requests, committedTokens: tokens } = load()
      return { requests, tokens }
    },
    load,

    /** Decides at once, or queues the entry and returns undefined. */
    arrive(entry: RemoteEntry): LaneDecision | undefined {
      const decision = lane.arrive(entry, clock.monotonic())
      if (decision === undefined || decision.kind === 'admitted') entries.set(entry.id, entry)
      return decision
    },

    /** Redis has admitted the entry and counts it, so the local lane must not. */
    countAtRedis(entry: RemoteEntry): void {
      const nowMs = clock.monotonic()
      lane.leave(entry, nowMs)
      entry.isCountedAtRedis = true
      entry.startedAtMs = nowMs
    },

    keep(entry: RemoteEntry): void {
      entry.fate = 'kept'
      lane.keep(entry)
    },

    /** For an entry that the local lane has already refused. */
    forget: (entry: RemoteEntry) => void entries.delete(entry.id),

    remove(entry: RemoteEntry): void {
      entries.delete(entry.id)
      lane.leave(entry, clock.monotonic())
    },

    /**
     * Makes the local lane count everything in flight, and keeps the order of the requests that wait. `limits` must be
     * the limits in force while Redis decides: any number may wait, and none is admitted. A place that was preempted is
     * not preempted again.
     */
    countLocally(limits: LaneLimits): void {
      const all = [...entries.values()]
      const inFlight = all.filter(({ isCountedAtRedis }) => isCountedAtRedis)
      if (inFlight.length === 0) return
      const waiting = all.filter(({ isWaiting }) => isWaiting)
      const nowMs = clock.monotonic()
      for (const entry of waiting) lane.leave(entry, nowMs)
      const batch = { ...limits.batch, reserveTokens: 0, maxShare: 1 }
      lane.setLimits({ ...limits, maxConcurrentRequests: UNLIMITED, batch }, nowMs)
      for (const entry of inFlight) {
        entry.isCountedAtRedis = false
        lane.arrive(entry, nowMs)
        if (entry.fate !== 'in_flight') lane.keep(entry)
      }
      lane.setLimits(limits, nowMs)
      for (const entry of waiting) lane.arrive(entry, entry.arrivedAtMs)
    },

    setLimits: (next: LaneLimits) => lane.setLimits(next, clock.monotonic()),
    close: () => lane.close(),
    stop: () => expiry.stop(),

    /** The next `deliver` notifies the caller. */
    notify: (entry: RemoteEntry, decision: Decision) => outbox.add(entry, decision),

    /** Sets the timer before it notifies any caller, because a caller may enter again from its callback. */
    deliver(): void {
      expiry.set()
      outbox.deliver()
      for (let entry = preempted.shift(); entry !== undefined; entry = preempted.shift()) {
        if (entries.has(entry.id)) entry.preempt()
      }
    },
  }
}

export type LocalQueue = ReturnType<typeof openLocalQueue>
