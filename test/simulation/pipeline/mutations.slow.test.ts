import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { mutantsOf } from '../../mutants.ts'
import { pipelineMutations } from './mutations.ts'
import { PipelineViolation } from './request-seen.ts'
import { simulatePipeline, type CreatePipeline } from './world.ts'

const seed = 20_261
/** Some mistakes show only once in thousands of schedules. The first violation ends the search. */
const brokenSchedules = 12_000

/** Shows that the simulation can fail: it notices each break of the pipeline, by the rule that it breaks. */
describe('a broken pipeline is caught by the simulation', () => {
  const source = new URL('../../../src/inference/pipeline/pipeline.ts', import.meta.url)
  const mutants = mutantsOf<{ createPipeline: CreatePipeline }>(source)
  after(mutants.remove)

  it('an unbroken copy passes', async () => {
    const { createPipeline } = await mutants.load()
    await simulatePipeline(createPipeline, seed, 500)
  })

  for (const mutation of pipelineMutations) {
    it(`${mutation.breaks}: ${mutation.name}`, async () => {
      const { createPipeline } = await mutants.load(mutation)
      await assert.rejects(simulatePipeline(createPipeline, seed, brokenSchedules), (error) => {
        assert.ok(error instanceof PipelineViolation, String(error))
        assert.ok([mutation.breaks, mutation.alsoBreaks].includes(error.rule), error.message)
        return true
      })
    })
  }
})
