import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { localModels } from '../../src/embedded/service/local-models.ts'
import { within } from '../support/waiting.ts'

/** Nothing listens there. */
const NOWHERE = 'http://127.0.0.1:1/'

describe('the models a service runs itself', () => {
  let directory: string
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'weir-local-'))
  })
  after(() => rm(directory, { recursive: true, force: true }))

  it('are fetched in the order they are named; a failure says why', async () => {
    const environment = { ...process.env, npm_config_registry: NOWHERE, HF_ENDPOINT: NOWHERE }
    const local = localModels({ directory, environment, log: () => {} })
    const failure = Promise.withResolvers<readonly [slug: string, reason: string]>()
    const slugs = ['openai/whisper-base', 'openai/whisper-tiny', 'tinyllama/tinyllama-1.1b-chat']
    local.pullMissing(slugs, {
      progress: () => {},
      ready: () => {},
      failed: (slug, reason) => failure.resolve([slug, reason]),
    })
    const [slug, reason] = await within(30_000, 'a pull fails', failure.promise)
    assert.equal(slug, 'openai/whisper-base')
    assert.match(reason, /ECONNREFUSED/)
    await local.close()
  })
})
