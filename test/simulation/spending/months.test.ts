import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { startRedis, type RedisServer } from '../../support/redis-server.ts'
import { isLongRun, runLength } from '../../support/long-run.ts'
import { simulationSeed } from '../seed.ts'
import { limitedSubjects, memoryAdapter, redisAdapter, simulateMonths, type MonthAdapter } from './months.ts'

describe('a spend limit while months or days change, under simulation', () => {
  let server: RedisServer
  before(async () => void (server = await startRedis()))
  after(() => server.remove())

  const adapters: readonly { name: string; worlds: number; open(): MonthAdapter }[] = [
    { name: 'memory', worlds: runLength(4, 200), open: () => memoryAdapter },
    { name: 'Redis', worlds: runLength(2, 40), open: () => redisAdapter(server.socket) },
  ]
  for (const { name, worlds, open } of adapters) {
    const cases = Object.entries(limitedSubjects).flatMap(([subject, limited]) =>
      [false, true].map((jumps) => ({ subject, limited, jumps })),
    )
    for (const { subject, limited, jumps } of cases) {
      const title = jumps
        ? 'never counts less than the ledger has, however the clock is set and whenever the store fails'
        : 'counts exactly what the ledger has, with requests in flight'
      it(`in ${name}, that of a ${subject} ${title}`, async (t) => {
        const seed = simulationSeed()
        t.diagnostic(`WEIR_SEED=${seed}`)
        const seen: Record<string, number> = {}
        for (let world = 0; world < worlds; world += 1) {
          const happenings = await simulateMonths(open(), seed + world, 300, { jumps, limited })
          for (const [happening, times] of Object.entries(happenings)) seen[happening] = (seen[happening] ?? 0) + times
        }
        t.diagnostic(JSON.stringify(seen))
        // A few worlds may lack what is rare.
        const rare = jumps && isLongRun ? ['failedReads', 'settledUnread'] : []
        for (const happening of ['months', 'held', 'refused', ...rare]) {
          assert.ok(seen[happening]! > worlds / 4, `${happening} happened only ${seen[happening]} times`)
        }
      })
    }
  }
})
