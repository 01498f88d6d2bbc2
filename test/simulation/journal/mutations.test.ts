import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { mutations } from './mutations.ts'
import { smallJournal } from './small-journal.ts'
import { JournalViolation } from './witness.ts'
import { simulateJournal } from './world.ts'

const options = { seed: 20_261, schedules: 100, isExhaustive: false }

/** Shows that the simulation can fail: it notices each break of the journal, by the rule that it breaks. */
describe('a broken journal is caught by the simulation', () => {
  const journal = smallJournal()
  after(journal.remove)

  for (const mutation of mutations) {
    it(`${mutation.breaks}: ${mutation.name}`, async () => {
      const code = await journal.load(mutation)
      await assert.rejects(simulateJournal(code, options), (error) => {
        assert.ok(error instanceof JournalViolation, String(error))
        assert.equal(error.rule, mutation.breaks, error.message)
        return true
      })
    })
  }
})
