import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openLane } from '../../../src/queue/lane.ts'
import { simulationSeed } from '../seed.ts'
import { simulateLanes } from './world.ts'

describe('the lane under simulation', () => {
  it('[Q1][Q2][Q4][Q5][Q6] keeps I1–I10 and I12–I20 at every step of 300,000 requests', (t) => {
    const seed = simulationSeed()
    t.diagnostic(`WEIR_SEED=${seed}`)
    const { steps, requests, ...happenings } = simulateLanes(openLane, seed, 300_000)
    t.diagnostic(`${requests} requests, ${steps} steps inspected, ${JSON.stringify(happenings)}`)
    for (const [happening, times] of Object.entries(happenings)) {
      assert.ok(times > 200, `${happening} happened only ${times} times`)
    }
  })

  it('repeats a run exactly from its seed', () => {
    assert.deepEqual(simulateLanes(openLane, 42, 5000), simulateLanes(openLane, 42, 5000))
    assert.notDeepEqual(simulateLanes(openLane, 42, 5000), simulateLanes(openLane, 43, 5000))
  })
})
