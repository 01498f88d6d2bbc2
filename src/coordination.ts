import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { memoryAdmission } from './admission/memory.ts'
import { redisAdmission } from './admission/redis/admission.ts'
import { memoryChanges } from './changes/memory.ts'
import { redisChanges, type ChangeEvents } from './changes/redis.ts'
import type { Admission } from './ports/admission.ts'
import type { ChangeFeed } from './ports/changes.ts'
import type { AlarmClock } from './ports/clock.ts'
import type { Coordination } from './ports/coordination.ts'
import type { RateLimiter } from './ports/rate-limit.ts'
import { memoryRateLimiter } from './rate-limit/memory.ts'
import { redisRateLimiter } from './rate-limit/redis.ts'
import { openLink, type LinkEvents } from './redis/link.ts'

/** What replicas have in common: the lanes, the rates and the feed of changes. A part of compose.ts. */
export interface CoordinationParts {
  readonly admission: Admission
  readonly rateLimiter: RateLimiter
  readonly changes: ChangeFeed
  readonly coordination: Coordination
  close(): Promise<void>
}

/** Without an address, everything lives in the memory of this process. */
export function openCoordination(
  redisUrl: string | undefined,
  clock: AlarmClock,
  version: string,
  events: LinkEvents & ChangeEvents,
): CoordinationParts {
  if (redisUrl === undefined) {
    return {
      admission: memoryAdmission(clock),
      rateLimiter: memoryRateLimiter(clock),
      changes: memoryChanges(),
      coordination: { state: () => 'alone', replicas: () => 1 },
      close: async () => {},
    }
  }
  const replica = `${hostname().replaceAll(/\s/g, '-')}-${process.pid}-${randomBytes(4).toString('hex')}`
  const startedAt = new Date(clock.now()).toISOString()
  const link = openLink({
    url: redisUrl,
    replica,
    clock,
    about: () => ({ version, started_at: startedAt, in_flight_requests: inFlight() }),
    events,
  })
  const admission = redisAdmission(link, clock)
  const inFlight = (): number =>
    [...admission.ownStatus().values()].reduce((sum, { inFlightRequests }) => sum + inFlightRequests, 0)
  return {
    admission,
    rateLimiter: redisRateLimiter(link, clock),
    changes: redisChanges(link, clock, events),
    coordination: { state: () => admission.state(), replicas: () => link.replicas() },
    async close() {
      await admission.part()
      await link.close()
    },
  }
}
