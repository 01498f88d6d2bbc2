import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openScheduler } from '../../../src/engines/on-demand/scheduler.ts'
import { simulationSeed } from '../seed.ts'
import { simulateEngines } from './world.ts'

describe('engines on demand under simulation', () => {
  it('keeps E1–E10 at every step of 60,000 calls', (t) => {
    const seed = simulationSeed()
    t.diagnostic(`WEIR_SEED=${seed}`)
    const { steps, calls, ...happenings } = simulateEngines(openScheduler, seed, 60_000)
    t.diagnostic(`${calls} calls, ${steps} steps inspected, ${JSON.stringify(happenings)}`)
    for (const [happening, times] of Object.entries(happenings)) {
      assert.ok(times > 10, `${happening} happened only ${times} times`)
    }
  })

  it('repeats a run exactly from its seed', () => {
    assert.deepEqual(simulateEngines(openScheduler, 42, 2000), simulateEngines(openScheduler, 42, 2000))
    assert.notDeepEqual(simulateEngines(openScheduler, 42, 2000), simulateEngines(openScheduler, 43, 2000))
  })
})
