import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { startRedis, type RedisServer } from '../../support/redis-server.ts'
import { isLongRun, runLength } from '../../support/long-run.ts'
import { simulationSeed } from '../seed.ts'
import { beside } from './both-lanes.ts'
import { redisLanes } from './redis-lane.ts'
import { simulateRemoteLanes } from './world.ts'

describe('the lane in Redis under simulation', () => {
  let server: RedisServer
  before(async () => void (server = await startRedis()))
  after(() => server.remove())

  it('[Q1][Q2][Q4][Q5][Q6] keeps I1–I10 and I12–I20 at every step of thousands of requests of two replicas', async (t) => {
    const seed = simulationSeed()
    t.diagnostic(`WEIR_SEED=${seed}`)
    const lanes = redisLanes(server.socket)
    t.after(lanes.close)
    const { steps, requests, ...happenings } = await simulateRemoteLanes(lanes.open, seed, runLength(1200, 10_000))
    t.diagnostic(`${requests} requests, ${steps} steps inspected, ${JSON.stringify(happenings)}`)
    // A short run may miss a rare event.
    for (const [happening, times] of isLongRun ? Object.entries(happenings) : []) {
      if (happening !== 'closed') assert.ok(times > 4, `${happening} happened only ${times} times`)
    }
  })

  it('decides, preempts and counts as lane.ts does, after every event', async (t) => {
    const seed = simulationSeed()
    t.diagnostic(`WEIR_SEED=${seed}`)
    const lanes = redisLanes(server.socket)
    t.after(lanes.close)
    await simulateRemoteLanes(beside(lanes.open), seed, runLength(500, 10_000))
  })
})
