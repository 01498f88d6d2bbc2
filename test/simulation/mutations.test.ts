import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { pathToFileURL } from 'node:url'
import { mutations } from './mutations.ts'
import { Violation } from './witness.ts'
import { simulateLanes } from './world.ts'
import type { OpenLane } from './world.ts'

const seed = 20_261
const requests = 200_000

/** Shows that the simulation can fail: each break of the state machine is seen, and by the invariant it breaks. */
describe('a broken lane is caught by the simulation', () => {
  let source = ''
  let directory = ''

  before(async () => {
    source = await readFile(new URL('../../src/core/admission.ts', import.meta.url), 'utf8')
    directory = await mkdtemp(join(tmpdir(), 'weir-mutations-'))
  })
  after(() => rm(directory, { recursive: true }))

  async function load(text: string): Promise<OpenLane> {
    const file = join(directory, `${crypto.randomUUID()}.ts`)
    await writeFile(file, text)
    const mutant: { openLane: OpenLane } = await import(pathToFileURL(file).href)
    return mutant.openLane
  }

  it('an unbroken copy passes', async () => {
    simulateLanes(await load(source), seed, requests)
  })

  for (const { name, find, replace, breaks } of mutations) {
    it(`${breaks} ${name}`, async () => {
      assert.equal(source.split(find).length, 2, 'the text to break stands in the source exactly once')
      const openLane = await load(source.replace(find, () => replace))
      assert.throws(
        () => simulateLanes(openLane, seed, requests),
        (error) => {
          assert.ok(error instanceof Violation, String(error))
          assert.equal(error.invariant, breaks, error.message)
          return true
        },
      )
    })
  }
})
