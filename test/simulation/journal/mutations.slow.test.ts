import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { simulateInWorker } from './in-worker.ts'
import { mutations } from './mutations.ts'

/** Shows that the simulation can fail: it notices each break of the journal, by the rule that it breaks. */
describe('a broken journal is caught by the simulation', () => {
  for (const { seed = 20_261, breaks, ...mutation } of mutations) {
    it(`${breaks}: ${mutation.name}`, async () => {
      const verdict = await simulateInWorker({ seed, schedules: 50, isExhaustive: false, mutations: [mutation] })
      assert.equal(verdict.isRight ? 'not noticed' : verdict.rule, breaks, JSON.stringify(verdict))
    })
  }
})
