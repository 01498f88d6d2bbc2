import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { someOf } from '../../support/long-run.ts'
import { startRedis, type RedisServer } from '../../support/redis-server.ts'
import { redisLanes } from './redis-lane.ts'
import { redisMutations } from './redis-mutations.ts'
import { Violation } from './witness.ts'
import { simulateRemoteLanes } from './world.ts'

/**
 * Shows that the simulation detects each mutation of the scripts by the invariant that it breaks.
 * `npm test` tries a few of them, from all over the list, and `npm run test:slow` all.
 */
describe('a broken lane in Redis is caught by the simulation', () => {
  let server: RedisServer
  before(async () => void (server = await startRedis()))
  after(() => server.remove())

  for (const { name, script, find, replace, breaks } of someOf(redisMutations, 3)) {
    it(`${breaks} ${name}`, async (t) => {
      const lanes = redisLanes(server.socket, (file, lua) => {
        if (file !== script) return lua
        assert.equal(lua.split(find).length, 2, `the text to break occurs exactly once: ${find}`)
        return lua.replace(find, () => replace)
      })
      t.after(lanes.close)
      await assert.rejects(simulateRemoteLanes(lanes.open, 20_274, 20_000), (error) => {
        assert.ok(error instanceof Violation, String(error))
        assert.equal(error.invariant, breaks, error.message)
        return true
      })
    })
  }
})
