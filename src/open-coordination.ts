import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { memoryAdmission } from './queue/memory.ts'
import { memoryChanges } from './cluster/changes/memory.ts'
import type { ChangeEvents } from './cluster/changes/redis/changes.ts'
import type { Admission } from './queue/admission.ts'
import type { ChangeFeed } from './cluster/changes/change-feed.ts'
import type { AlarmClock } from './shared/clock.ts'
import type { Coordination, Replica } from './cluster/coordination.ts'
import type { LedgerStatus } from './ledger/ledger.ts'
import { type RateLimiter, memoryRateLimiter } from './workspaces/rate-limits/rate-limit.ts'
import type { LinkEvents, RedisLink } from './cluster/redis/link.ts'

/** What replicas share: lanes, rate limits and the change feed. A part of compose.ts. */
export interface CoordinationParts {
  readonly admission: Admission
  readonly rateLimiter: RateLimiter
  readonly changes: ChangeFeed
  readonly coordination: Coordination
  /** undefined: there are no other replicas. */
  readonly link: RedisLink | undefined
  close(): Promise<void>
}

/** The state that this process reports to other replicas. */
export interface OwnState {
  readonly version: string
  ledger(): Pick<LedgerStatus, 'journalBytes' | 'journalLagMs'>
  isDraining(): boolean
}

/** Without an address, everything stays in the memory of this process. */
export async function openCoordination(
  redisUrl: string | undefined,
  clock: AlarmClock,
  own: OwnState,
  events: LinkEvents & ChangeEvents,
): Promise<CoordinationParts> {
  const name = `${hostname().replaceAll(/\s/g, '-')}-${process.pid}-${randomBytes(4).toString('hex')}`
  const startedAt = clock.now()
  const about = (admission: Admission, epoch: string | null): Replica => {
    const lanes = [...admission.ownStatus().values()]
    const { journalBytes, journalLagMs } = own.ledger()
    return {
      name,
      version: own.version,
      startedAt,
      epoch,
      inFlightRequests: lanes.reduce((sum, { inFlightRequests }) => sum + inFlightRequests, 0),
      queueDepth: lanes.reduce((sum, { queueDepth }) => sum + queueDepth, 0),
      journalBytes,
      journalLagMs,
      isDraining: own.isDraining(),
    }
  }
  return redisUrl === undefined ? alone() : joined(redisUrl)

  function alone(): CoordinationParts {
    const admission = memoryAdmission(clock)
    return {
      admission,
      rateLimiter: memoryRateLimiter(clock),
      changes: memoryChanges(),
      coordination: {
        replica: name,
        state: () => 'alone',
        replicas: () => 1,
        list: async () => [about(admission, null)],
        async drain(replica) {
          if (replica === name) events.drainRequested()
          return replica === name
        },
      },
      link: undefined,
      close: async () => {},
    }
  }

  async function joined(url: string): Promise<CoordinationParts> {
    const { openLink, redisAdmission, redisChanges, redisRateLimiter, replicaList } =
      await import('./redis-adapters.ts')
    const link = openLink({ url, replica: name, clock, about: ownState, events })
    const admission = redisAdmission(link, clock)
    const replicas = replicaList(link)
    function ownState(): Replica {
      return about(admission, link.membership()?.epoch ?? null)
    }
    return {
      admission,
      rateLimiter: redisRateLimiter(link, clock),
      changes: redisChanges(link, clock, events),
      coordination: {
        replica: name,
        state: () => admission.state(),
        replicas: () => link.replicas(),
        async list() {
          const found = link.membership() ? await replicas.list().catch(() => []) : []
          const others = found.filter((it) => it.name !== name).map(({ about: reported }) => reported as Replica)
          return [...others, ownState()].toSorted((one, other) => (one.name < other.name ? -1 : 1))
        },
        async drain(replica) {
          if (replica !== name) return replicas.drain(replica)
          events.drainRequested()
          return true
        },
      },
      link,
      async close() {
        await admission.leaveLanes()
        await link.close()
      },
    }
  }
}
