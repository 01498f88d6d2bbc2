import type { LaneLimits } from '../../core/admission/lane.ts'
import type { AlarmClock } from '../../ports/clock.ts'
import type { RedisLink } from '../../redis/link.ts'
import type { Promised } from './lane-scripts.ts'

/** How long a replica tries to get back to Redis before it serves on its own. Most interruptions are shorter. */
const BACK_WITHIN_MS = 1000
/** A request may use the share until this part of the lease is left: it still has to reach its engine. */
const LEASE_MARGIN = 0.1
const NOTHING: Promised = { requests: 0, tokens: 0 }
const MANY = Number.MAX_SAFE_INTEGER

/** Who decides about the room: Redis, nobody for the moment, or the replica within its share. */
export type Decider = 'redis' | 'none' | 'share'

/** A replica's lease in one lane, and what it may have in flight there without Redis. */
export function openShare(link: RedisLink, clock: AlarmClock) {
  let leaseEndsAtMs = -Infinity
  let promised = NOTHING
  let share = NOTHING
  let apartSinceMs = clock.monotonic()

  /** A proof with a gap proves nothing: others were given the share meanwhile. */
  function provenUntilMs(): number {
    const { sinceMs, untilMs } = link.proven()
    return Math.max(leaseEndsAtMs, sinceMs <= apartSinceMs ? untilMs : -Infinity)
  }

  function isProven(): boolean {
    return clock.monotonic() < provenUntilMs() - link.leaseMs * LEASE_MARGIN
  }

  return {
    /** Until then nobody else was given what this replica may serve on its own. */
    isProven,
    isEmpty: () => share.requests === 0,
    /** Whether a replica that is apart may admit by itself. */
    mayServe: () => share.requests > 0 && isProven() && clock.monotonic() >= apartSinceMs + BACK_WITHIN_MS,

    /** False once Redis may have given everything to others. A process that was stopped finds out here. */
    isLeased: () => clock.monotonic() < leaseEndsAtMs,
    renew: (sentAtMs: number) => void (leaseEndsAtMs = sentAtMs + link.leaseMs),

    promised: () => promised,
    promise: (next: Promised) => void (promised = next),
    recall: () => void (promised = NOTHING),
    /** The promise pays for what Redis admits. */
    spend(cost: number): void {
      promised = { requests: Math.max(0, promised.requests - 1), tokens: Math.max(0, promised.tokens - cost) }
    },

    /** From now on this replica is on its own: with what it has in flight, and what it was promised, unless its lease has ended. */
    keep(running: Promised): void {
      apartSinceMs = clock.monotonic()
      share =
        apartSinceMs < leaseEndsAtMs
          ? { requests: running.requests + promised.requests, tokens: running.tokens + promised.tokens }
          : NOTHING
    },

    /** What is left of the share beside what is in flight is promised again, if nobody else can have it. */
    returnTo(running: Promised): void {
      if (clock.monotonic() >= provenUntilMs()) share = NOTHING
      promised = {
        requests: Math.max(0, share.requests - running.requests),
        tokens: Math.max(0, share.tokens - running.tokens),
      }
    },

    /** The limits of the waiting room. Only within the share does the room itself admit anybody. */
    roomLimits({ maxQueueDepth, maxWaitMs }: LaneLimits, decider: Decider): LaneLimits {
      const own = decider === 'share'
      return {
        tokenBudget: own ? share.tokens : MANY,
        maxConcurrentRequests: own ? share.requests : 0,
        maxQueueDepth: decider === 'redis' ? MANY : Math.ceil(maxQueueDepth / link.replicas()),
        // Where nobody may wait, a caller still has to wait for Redis' answer.
        maxWaitMs: maxWaitMs === 0 ? link.leaseMs : maxWaitMs,
      }
    },
  }
}
export type Share = ReturnType<typeof openShare>
