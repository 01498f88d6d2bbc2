import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { mutantsOf } from '../../mutants.ts'
import { mutations } from './mutations.ts'
import { Violation } from './witness.ts'
import { simulateEngines, type OpenScheduler } from './world.ts'

const seed = 20_274

/** Shows that the simulation can fail: it detects each mutation of the scheduler by the invariant that it breaks. */
describe('a broken scheduler of engines is caught by the simulation', () => {
  const mutants = mutantsOf<{ openScheduler: OpenScheduler }>(
    new URL('../../../src/engines/on-demand/scheduler.ts', import.meta.url),
  )
  after(mutants.remove)

  it('an unbroken copy passes', async () => {
    const { openScheduler } = await mutants.load()
    simulateEngines(openScheduler, seed, 5000)
  })

  for (const mutation of mutations) {
    it(`${mutation.breaks} ${mutation.name}`, async () => {
      const { openScheduler } = await mutants.load(mutation)
      assert.throws(
        () => simulateEngines(openScheduler, seed, 60_000),
        (error) => {
          assert.ok(error instanceof Violation, String(error))
          assert.equal(error.invariant, mutation.breaks, error.message)
          return true
        },
      )
    })
  }
})
