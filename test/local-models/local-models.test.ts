import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { RUNTIME_NAME } from '../../src/local-models/files/runtime-files.ts'
import { localModels } from '../../src/local-models/local-models.ts'
import type { Engine } from '../../src/engines/engine.ts'
import { eventually, within } from '../support/waiting.ts'

/** Nothing listens there. */
const NOWHERE = 'http://127.0.0.1:1/'

describe('the models a service runs itself', () => {
  let directory: string
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'weir-local-'))
  })
  after(() => rm(directory, { recursive: true, force: true }))

  it('are fetched in the order in which they are named; a failure has a reason', async () => {
    const environment = { ...process.env, npm_config_registry: NOWHERE, HF_ENDPOINT: NOWHERE }
    const local = localModels({ directory, environment, log: () => {} })
    const failure = Promise.withResolvers<readonly [slug: string, reason: string]>()
    const slugs = ['openai/whisper-base', 'openai/whisper-tiny', 'tinyllama/tinyllama-1.1b-chat']
    local.pullMissing(slugs, {
      progress: () => {},
      ready: () => {},
      stopped: () => {},
      failed: (slug, reason) => failure.resolve([slug, reason]),
    })
    const [slug, reason] = await within(30_000, 'a pull fails', failure.promise)
    assert.equal(slug, 'openai/whisper-base')
    assert.match(reason, /ECONNREFUSED/)
    await local.close()
  })

  it('wait for the packages that run them, which are fetched first', async () => {
    const installation = join(directory, 'installation')
    mkdirSync(join(installation, 'packages/local-models'), { recursive: true })
    const pinned = { version: '1.0.0', integrity: 'sha512-AAAA', optional: true }
    const workspace = { optionalDependencies: { engine: '1.0.0' } }
    const lock = { packages: { 'packages/local-models': workspace, 'node_modules/engine': pinned } }
    writeFileSync(join(installation, 'package-lock.json'), JSON.stringify(lock))
    const environment = { ...process.env, npm_config_registry: NOWHERE }
    const local = localModels({ directory, environment, installation, log: () => {} })
    const engine = local.engine('weir/starter-image', () => ({}) as Engine)
    const state = () => engine.missingFiles?.()
    assert.equal(state()?.isArriving, false)
    assert.ok((state()?.bytes ?? 0) > 150e6, 'its size is with that of what runs it')

    const failure = Promise.withResolvers<readonly [name: string, reason: string]>()
    const failed = (name: string, reason: string): void => failure.resolve([name, reason])
    local.pullMissing(['weir/starter-image'], { progress: () => {}, ready: () => {}, stopped: () => {}, failed })
    assert.equal(state()?.isArriving, true)
    const [name, reason] = await within(30_000, 'the fetch fails', failure.promise)
    assert.equal(name, RUNTIME_NAME)
    assert.match(reason, /^Could not fetch the runtime of local models: .*ECONNREFUSED/)

    mkdirSync(join(installation, 'node_modules/engine'), { recursive: true })
    writeFileSync(join(installation, 'node_modules/engine/package.json'), '{"version":"1.0.0"}')
    await eventually('the installed package is seen', () => state() === undefined && engine.usable())
    await local.close()
  })
})
