import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { mutantsOf } from '../../mutants.ts'
import { mutations } from './mutations.ts'
import { Violation } from './witness.ts'
import { simulateLanes } from './world.ts'
import type { OpenLane } from './world.ts'

const seed = 20_274
const requests = 300_000

/** Shows that the simulation can fail: it detects each mutation of the state machine by the invariant that it breaks. */
describe('a broken lane is caught by the simulation', () => {
  const mutants = mutantsOf<{ openLane: OpenLane }>(new URL('../../../src/queue/lane.ts', import.meta.url))
  after(mutants.remove)

  it('an unbroken copy passes', async () => {
    const { openLane } = await mutants.load()
    simulateLanes(openLane, seed, 20_000)
  })

  for (const mutation of mutations) {
    it(`${mutation.breaks} ${mutation.name}`, async () => {
      const { openLane } = await mutants.load(mutation)
      assert.throws(
        () => simulateLanes(openLane, seed, requests),
        (error) => {
          assert.ok(error instanceof Violation, String(error))
          assert.equal(error.invariant, mutation.breaks, error.message)
          return true
        },
      )
    })
  }
})
