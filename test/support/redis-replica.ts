import { redisAdmission, type RedisAdmission } from '../../src/queue/redis/admission.ts'
import type { AlarmClock } from '../../src/shared/clock.ts'
import { openLink, type RedisLink } from '../../src/cluster/redis/link.ts'
import { systemClock } from '../../src/shared/system-clock.ts'
import { eventually } from './waiting.ts'

/** One replica's link and admission, without a service around them. */
export interface TestReplica {
  readonly name: string
  readonly link: RedisLink
  readonly admission: RedisAdmission
  /** What happened to its link. */
  readonly log: string[]
  /** Leaves its lanes and closes the link. */
  close(): Promise<void>
  /** Disappears as if it were killed. */
  vanish(): Promise<void>
}

let opened = 0

export function testReplica(url: string, options: { leaseMs?: number; clock?: AlarmClock } = {}): TestReplica {
  const name = `r${++opened}-${process.pid}`
  const log: string[] = []
  const { clock = systemClock, leaseMs = 1000 } = options
  const link = openLink({
    url,
    replica: name,
    clock,
    leaseMs,
    heartbeatMs: leaseMs / 5,
    about: () => ({}),
    events: {
      joined: (epoch) => log.push(`joined ${epoch}`),
      lost: (reason) => log.push(`lost: ${reason}`),
      drainRequested: () => log.push('drain'),
    },
  })
  const admission = redisAdmission(link, clock)
  return {
    name,
    link,
    admission,
    log,
    async close() {
      await admission.leaveLanes()
      await link.close()
    },
    vanish: () => link.close(),
  }
}

/** Resolves when the quiet period of the epoch is over and Redis admits requests. */
export async function settledEpoch({ link }: TestReplica): Promise<void> {
  await eventually('the epoch is settled', () => {
    const membership = link.membership()
    return membership !== undefined && performance.now() >= membership.quietUntilMs
  })
}
