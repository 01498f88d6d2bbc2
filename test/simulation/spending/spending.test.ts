import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { startRedis, type RedisServer } from '../../support/redis-server.ts'
import { isLongRun, runLength, someOf } from '../../support/long-run.ts'
import { simulationSeed } from '../seed.ts'
import { mutations } from './mutations.ts'
import { Overdrawn, simulateSpending } from './world.ts'

describe('a hard spend limit over replicas under simulation', () => {
  let server: RedisServer
  before(async () => void (server = await startRedis()))
  after(() => server.remove())

  it('[S1] is never overdrawn, and has exactly its room when no request runs', async (t) => {
    const seed = simulationSeed()
    t.diagnostic(`WEIR_SEED=${seed}`)
    const seen: Record<string, number> = {}
    for (let world = 0; world < runLength(5, 60); world += 1) {
      const happenings = await simulateSpending(server.socket, seed + world, 500)
      for (const [name, times] of Object.entries(happenings)) seen[name] = (seen[name] ?? 0) + times
    }
    t.diagnostic(JSON.stringify(seen))
    // A few worlds may lack what is rare.
    for (const [happening, times] of isLongRun ? Object.entries(seen) : []) {
      assert.ok(times > 2, `${happening} happened only ${times} times`)
    }
  })
})

/** Shows that the simulation notices each break of the scripts. `npm test` tries two of them, and `npm run test:slow` all. */
describe('a broken account in Redis is caught by the simulation', () => {
  let server: RedisServer
  before(async () => void (server = await startRedis()))
  after(() => server.remove())

  for (const { name, script, find, replace } of someOf(mutations, 2)) {
    it(name, async () => {
      const breakLua = (file: string, lua: string): string => {
        if (file !== script) return lua
        assert.equal(lua.split(find).length, 2, `the text to break occurs exactly once: ${find}`)
        return lua.replace(find, () => replace)
      }
      await assert.rejects(async () => {
        for (let world = 0; world < 40; world += 1) await simulateSpending(server.socket, 20_261 + world, 500, breakLua)
      }, Overdrawn)
    })
  }
})
