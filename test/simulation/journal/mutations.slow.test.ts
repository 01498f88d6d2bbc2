import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { someOf } from '../../support/long-run.ts'
import { simulateInWorker } from './in-worker.ts'
import { mutations } from './mutations.ts'

/**
 * Shows that the simulation can fail: it notices each break of the journal, by the rule that it breaks.
 * `npm test` tries a few of them, from all over the list, and `npm run test:slow` all.
 */
describe('a broken journal is caught by the simulation', () => {
  for (const { seed = 20_261, breaks, ...mutation } of someOf(mutations, 3)) {
    it(`${breaks}: ${mutation.name}`, async () => {
      const verdict = await simulateInWorker({ seed, schedules: 50, isExhaustive: false, mutations: [mutation] })
      assert.equal(verdict.isRight ? 'not noticed' : verdict.rule, breaks, JSON.stringify(verdict))
    })
  }
})
