import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { simulationSeed } from '../seed.ts'
import { simulateInWorker } from './in-worker.ts'

describe('the pipeline under simulation', () => {
  it('keeps its rules at every step of 100,000 schedules of faults', async (t) => {
    const seed = simulationSeed()
    t.diagnostic(`WEIR_SEED=${seed}`)
    const { steps, requests, happenings } = await simulateInWorker({ seed, schedules: 100_000 })
    t.diagnostic(`${requests} requests, ${steps} steps, ${JSON.stringify(happenings)}`)
    for (const [happening, times] of Object.entries(happenings)) {
      assert.ok(times > 1000, `${happening} happened only ${times} times`)
    }
  })

  it('repeats a run exactly from its seed', async () => {
    const run = (seed: number) => simulateInWorker({ seed, schedules: 500 })
    assert.deepEqual(await run(42), await run(42))
    assert.notDeepEqual(await run(42), await run(43))
  })
})
