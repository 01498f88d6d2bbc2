import assert from 'node:assert/strict'
import { it } from 'node:test'
import { runLength } from '../../support/long-run.ts'
import { simulationSeed } from '../seed.ts'
import { simulateInWorker } from './in-worker.ts'

it('the journal loses, duplicates and overbills nothing, wherever it crashes and whatever the crash leaves', async (t) => {
  const run = { seed: simulationSeed(), schedules: runLength(5, 30), isExhaustive: false, mutations: [] }
  const verdict = await simulateInWorker(run)
  assert.ok(verdict.isRight, JSON.stringify(verdict))
  t.diagnostic(`${verdict.tally.crashes} crashes, ${verdict.tally.recoveries} recoveries`)
})
