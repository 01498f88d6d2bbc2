import assert from 'node:assert/strict'
import { it } from 'node:test'
import { simulateInWorker } from '../simulation/journal/in-worker.ts'
import { simulationSeed } from '../simulation/seed.ts'

it('crashed after everything that happens, and again at each step of every recovery, the journal loses nothing', async (t) => {
  const run = { seed: simulationSeed(), schedules: 500, isExhaustive: true, mutations: [] }
  const verdict = await simulateInWorker(run)
  assert.ok(verdict.isRight, JSON.stringify(verdict))
  t.diagnostic(`${verdict.tally.crashes} crashes, ${verdict.tally.recoveries} recoveries`)
})
