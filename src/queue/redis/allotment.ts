import { batchLimitsOf } from '../batch-places.ts'
import type { LaneLimits } from '../lane.ts'
import type { AlarmClock } from '../../shared/clock.ts'
import type { RedisLink } from '../../cluster/redis/link.ts'
import type { Promised } from './lane-scripts.ts'

/** How long a replica tries to reconnect before it serves without Redis. Most interruptions are shorter. */
const RECONNECT_GRACE_MS = 1000
/** The allotment is not used in this last fraction of the lease, because an admitted request still has to reach its engine. */
const LEASE_MARGIN = 0.1
const NOTHING: Promised = { requests: 0, tokens: 0 }
const UNLIMITED = Number.MAX_SAFE_INTEGER

/** What admits requests from the local queue: Redis, nothing for the moment, or the replica within its allotment. */
export type Decider = 'redis' | 'none' | 'allotment'

/** A replica's lease in one lane, and its allotment: what it may have in flight there without Redis. */
export function openAllotment(link: RedisLink, clock: AlarmClock) {
  let leaseEndsAtMs = -Infinity
  let promised = NOTHING
  let allotment = NOTHING
  let partitionedSinceMs = clock.monotonic()

  /** The link's proof counts only if it has no gap since the partition began. In a gap, others may have been given the allotment. */
  function provenUntilMs(): number {
    const { sinceMs, untilMs } = link.proven()
    return Math.max(leaseEndsAtMs, sinceMs <= partitionedSinceMs ? untilMs : -Infinity)
  }

  function isProven(): boolean {
    return clock.monotonic() < provenUntilMs() - link.leaseMs * LEASE_MARGIN
  }

  return {
    /** Whether it is certain that no other replica has been given this allotment. */
    isProven,
    isEmpty: () => allotment.requests === 0,
    /** Whether a partitioned replica may admit requests by itself. */
    mayServe: () =>
      allotment.requests > 0 && isProven() && clock.monotonic() >= partitionedSinceMs + RECONNECT_GRACE_MS,

    /** False once Redis may have given everything to others. A process that was suspended detects it here. */
    isLeased: () => clock.monotonic() < leaseEndsAtMs,
    renew: (sentAtMs: number) => void (leaseEndsAtMs = sentAtMs + link.leaseMs),

    promised: () => promised,
    promise: (next: Promised) => void (promised = next),
    recall: () => void (promised = NOTHING),
    /** A request that Redis admits is deducted from the promise. */
    spend(cost: number): void {
      promised = { requests: Math.max(0, promised.requests - 1), tokens: Math.max(0, promised.tokens - cost) }
    },

    /** Starts a partition. The allotment is what is in flight plus what was promised, or nothing if the lease has ended. */
    freeze(running: Promised): void {
      partitionedSinceMs = clock.monotonic()
      allotment =
        partitionedSinceMs < leaseEndsAtMs
          ? { requests: running.requests + promised.requests, tokens: running.tokens + promised.tokens }
          : NOTHING
    },

    /** Ends a partition. What is unused of the allotment becomes the promise again, unless others may have been given it. */
    restorePromise(running: Promised): void {
      if (clock.monotonic() >= provenUntilMs()) allotment = NOTHING
      promised = {
        requests: Math.max(0, allotment.requests - running.requests),
        tokens: Math.max(0, allotment.tokens - running.tokens),
      }
    },

    /** The limits of the local queue. It admits requests by itself only within the allotment. */
    localLimits(limits: LaneLimits, decider: Decider): LaneLimits {
      const own = decider === 'allotment'
      const { maxWaitMs, maxRequestsPerWorkspace } = limits
      const { preempt, maxQueueDepth: batchDepth } = batchLimitsOf(limits)
      const depth = (whole: number): number => (decider === 'redis' ? UNLIMITED : Math.ceil(whole / link.replicas()))
      return {
        tokenBudget: own ? allotment.tokens : UNLIMITED,
        maxConcurrentRequests: own ? allotment.requests : 0,
        maxQueueDepth: depth(limits.maxQueueDepth),
        // Without Redis no batch place starts. Those in flight give way to this replica's online requests.
        batch: { maxShare: 0, preempt, maxQueueDepth: depth(batchDepth) },
        // A maximum wait of 0 still has to leave time for Redis to answer.
        maxWaitMs: maxWaitMs === 0 ? link.leaseMs : maxWaitMs,
        maxRequestsPerWorkspace:
          decider === 'redis' || maxRequestsPerWorkspace === undefined
            ? undefined
            : Math.ceil(maxRequestsPerWorkspace / link.replicas()),
      }
    },
  }
}
export type Allotment = ReturnType<typeof openAllotment>
