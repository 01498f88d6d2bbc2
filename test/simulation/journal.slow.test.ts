import assert from 'node:assert/strict'
import { it } from 'node:test'
import { simulateInWorker } from '../simulation/journal/in-worker.ts'
import { simulationSeed } from '../simulation/seed.ts'

it('the journal loses nothing in a crash after any event, and again at each step of every recovery', async (t) => {
  const run = { seed: simulationSeed(), schedules: 500, isExhaustive: true, mutations: [] }
  const verdict = await simulateInWorker(run)
  assert.ok(verdict.isRight, JSON.stringify(verdict))
  t.diagnostic(`${verdict.tally.crashes} crashes, ${verdict.tally.recoveries} recoveries`)
})
