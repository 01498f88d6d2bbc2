import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { startRedis, type RedisServer } from '../../support/redis-server.ts'
import { isLongRun, runLength, someOf } from '../../support/long-run.ts'
import { simulationSeed } from '../seed.ts'
import { mutations } from './mutations.ts'
import { limitedKey, limitedWorkspace } from './replica.ts'
import { Overdrawn, simulateSpending, type SimulationOptions } from './world.ts'

/** The text of a script with one replacement. */
function breaking({ script, find, replace }: { script: string; find: string; replace: string }) {
  return (file: string, lua: string): string => {
    if (file !== script) return lua
    assert.equal(lua.split(find).length, 2, `the text to break occurs exactly once: ${find}`)
    return lua.replace(find, () => replace)
  }
}

/** The version that never closed an account had no number of the opening. */
const formerLua = breaking({ script: 'reserve', find: '  take_opening(account, report)\n', replace: '' })

describe('a hard spend limit over replicas under simulation', () => {
  let server: RedisServer
  before(async () => void (server = await startRedis()))
  after(() => server.remove())

  const cases: readonly (SimulationOptions & { title: string })[] = [
    { title: '', limited: limitedWorkspace },
    { title: ' for a key whose idle accounts are closed and opened again', limited: limitedKey },
    { title: ' for a key, beside replicas that close no accounts', limited: limitedKey, formerLua },
  ]
  for (const { title, ...options } of cases) {
    it(`[S1] is never overdrawn, and has exactly its room when no request runs${title}`, async (t) => {
      const seed = simulationSeed()
      t.diagnostic(`WEIR_SEED=${seed}`)
      const seen: Record<string, number> = {}
      for (let world = 0; world < runLength(2, 60); world += 1) {
        const happenings = await simulateSpending(server.socket, seed + world, 500, options)
        for (const [name, times] of Object.entries(happenings)) seen[name] = (seen[name] ?? 0) + times
      }
      t.diagnostic(JSON.stringify(seen))
      const { reopened, ...others } = seen
      if (options.limited === limitedWorkspace) assert.equal(reopened, 0)
      else others['reopened'] = reopened ?? 0
      // A few worlds may lack what is rare.
      for (const [happening, times] of isLongRun ? Object.entries(others) : []) {
        assert.ok(times > 2, `${happening} happened only ${times} times`)
      }
    })
  }
})

/** Shows that the simulation notices each break of the scripts. `npm test` tries two of them, and `npm run test:slow` all. */
describe('a broken account in Redis is caught by the simulation', () => {
  let server: RedisServer
  before(async () => void (server = await startRedis()))
  after(() => server.remove())

  for (const { name, ...mutation } of someOf(mutations, 2)) {
    it(name, async () => {
      const breakLua = breaking(mutation)
      await assert.rejects(async () => {
        for (let world = 0; world < 40; world += 1) {
          await simulateSpending(server.socket, 20_261 + world, 500, { breakLua })
        }
      }, Overdrawn)
    })
  }

  it('the totals of an account that was closed stay when it is opened again', async () => {
    await assert.rejects(async () => {
      for (let world = 0; world < 40; world += 1) {
        await simulateSpending(server.socket, 20_270 + world, 500, { limited: limitedKey, breakLua: formerLua })
      }
    }, Overdrawn)
  })
})
