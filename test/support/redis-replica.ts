import { redisAdmission, type RedisAdmission } from '../../src/admission/redis/admission.ts'
import type { AlarmClock } from '../../src/ports/clock.ts'
import { openLink, type RedisLink } from '../../src/redis/link.ts'
import { systemClock } from '../../src/system-clock.ts'
import { eventually } from './waiting.ts'

/** One replica's side of Redis, without a service around it. */
export interface TestReplica {
  readonly name: string
  readonly link: RedisLink
  readonly admission: RedisAdmission
  /** What happened to its link. */
  readonly log: string[]
  /** Goes away in order. */
  close(): Promise<void>
  /** Goes away as if it were killed. */
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
    beatMs: leaseMs / 5,
    about: () => ({}),
    events: {
      joined: (epoch) => log.push(`joined ${epoch}`),
      lost: (reason) => log.push(`lost: ${reason}`),
      askedToDrain: () => log.push('drain'),
    },
  })
  const admission = redisAdmission(link, clock)
  return {
    name,
    link,
    admission,
    log,
    async close() {
      await admission.part()
      await link.close()
    },
    vanish: () => link.close(),
  }
}

/** Resolves when Redis admits newcomers. */
export async function settledEpoch({ link }: TestReplica): Promise<void> {
  await eventually('the epoch is settled', () => {
    const membership = link.membership()
    return membership !== undefined && performance.now() >= membership.quietUntilMs
  })
}
