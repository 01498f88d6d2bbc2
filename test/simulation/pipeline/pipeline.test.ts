import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { runLength } from '../../support/long-run.ts'
import { simulationSeed } from '../seed.ts'
import { simulateInWorker } from './in-worker.ts'

describe('the pipeline under simulation', () => {
  const schedules = runLength(1500, 100_000)
  it(`keeps its rules at every step of ${schedules} schedules of faults`, async (t) => {
    const seed = simulationSeed()
    t.diagnostic(`WEIR_SEED=${seed}`)
    const { steps, requests, happenings } = await simulateInWorker({ seed, schedules })
    t.diagnostic(`${requests} requests, ${steps} steps, ${JSON.stringify(happenings)}`)
    for (const [happening, times] of Object.entries(happenings)) {
      assert.ok(times > schedules / 100, `${happening} happened only ${times} times`)
    }
  })

  it('repeats a run exactly from its seed', async () => {
    const run = (seed: number) => simulateInWorker({ seed, schedules: 100 })
    assert.deepEqual(await run(42), await run(42))
    assert.notDeepEqual(await run(42), await run(43))
  })
})
