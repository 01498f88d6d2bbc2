import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { modelFiles } from '../../src/local-models/files/model-files.ts'
import { RUNTIME_NAME } from '../../src/local-models/files/runtime-files.ts'
import { findModel, modelBytes, runtimeBytes } from '../../src/local-models/installed.ts'
import { localModels } from '../../src/local-models/local-models.ts'
import type { Engine } from '../../src/engines/engine.ts'
import { eventually, within } from '../support/waiting.ts'

/** Nothing listens there. */
const NOWHERE = 'http://127.0.0.1:1/'
const PRESENT = 'sentence-transformers/all-minilm-l6-v2'

describe('the models a service runs itself', () => {
  let directory: string
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'weir-local-'))
  })
  after(() => rm(directory, { recursive: true, force: true }))

  it('are fetched in the order in which they are named; a failure has a reason', async () => {
    const environment = { ...process.env, npm_config_registry: NOWHERE, HF_ENDPOINT: NOWHERE }
    const { installation, complete } = incompleteInstallation()
    complete()
    const local = localModels({ directory, environment, installation, log: () => {} })
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

  const modelOf = (slug: string) => findModel(slug) ?? assert.fail(slug)

  /** As far as names say. */
  function putIn(models: string, slug: string): void {
    for (const { path } of modelOf(slug).files) {
      mkdirSync(dirname(join(models, path)), { recursive: true })
      writeFileSync(join(models, path), '')
    }
  }

  /** An installation that needs one package to run models, which is not there yet. */
  function incompleteInstallation(): { readonly installation: string; complete(): void } {
    const installation = mkdtempSync(join(directory, 'installation-'))
    mkdirSync(join(installation, 'packages/local-models'), { recursive: true })
    const pinned = { version: '1.0.0', integrity: 'sha512-AAAA', optional: true }
    const workspace = { optionalDependencies: { engine: '1.0.0' } }
    const lock = { packages: { 'packages/local-models': workspace, 'node_modules/engine': pinned } }
    writeFileSync(join(installation, 'package-lock.json'), JSON.stringify(lock))
    return {
      installation,
      complete() {
        mkdirSync(join(installation, 'node_modules/engine'), { recursive: true })
        writeFileSync(join(installation, 'node_modules/engine/package.json'), '{"version":"1.0.0"}')
      },
    }
  }

  it('are paused, resumed and removed by the operator, in this process or another', async (t) => {
    const hub = createServer(() => {}).listen(0, '127.0.0.1')
    await once(hub, 'listening')
    t.after(() => hub.close() && hub.closeAllConnections())
    const { port } = hub.address() as AddressInfo
    const { installation, complete } = incompleteInstallation()
    const environment = { ...process.env, HF_ENDPOINT: `http://127.0.0.1:${port}` }
    const models = join(directory, 'stopped')
    const local = localModels({ directory: models, environment, installation, log: () => {} })
    t.after(() => local.close())
    const ended: string[] = []
    const events = {
      progress: () => {},
      ready: (slug: string) => ended.push(`ready ${slug}`),
      failed: (slug: string) => ended.push(`failed ${slug}`),
      stopped: (slug: string) => ended.push(`stopped ${slug}`),
    }
    local.pullMissing([], events)
    assert.equal(local.runtimeState(), 'not_downloaded', 'nothing needs it')
    complete()
    assert.equal(local.runtimeState(), 'ready')

    const [first, second] = ['openai/whisper-base', 'openai/whisper-tiny'] as const
    const stateOf = (slug: string) => {
      const { state, isWaiting } = local.stateOf(slug)
      return `${state}${isWaiting ? ', waiting' : ''}`
    }
    putIn(models, PRESENT)
    local.pullMissing([PRESENT, first, second], events)
    assert.deepEqual([PRESENT, first, second].map(stateOf), ['ready', 'downloading', 'downloading, waiting'])

    modelFiles(models, { environment }).setOrder(first, 'pause')
    await eventually('the order of another process is followed', () => ended.length > 0)
    assert.deepEqual(ended.splice(0), [`stopped ${first}`])
    assert.deepEqual([first, second].map(stateOf), ['paused', 'downloading'])

    local.pause(second)
    assert.deepEqual(ended.splice(0), [`stopped ${second}`])
    local.pullMissing([first, second], events)
    assert.deepEqual([first, second].map(stateOf), ['paused', 'paused'], 'a paused one is not resumed by itself')
    await local.download(second)
    assert.equal(stateOf(second), 'downloading')
    await local.remove(second)
    assert.equal(stateOf(second), 'not_downloaded')
    assert.deepEqual((await local.memory()).loaded, { onnx: [], llama: [] })
  })

  it('wait for the packages that run them, which are fetched first', async () => {
    const { installation, complete } = incompleteInstallation()
    const environment = { ...process.env, npm_config_registry: NOWHERE }
    const models = join(directory, 'waiting')
    putIn(models, PRESENT)
    const local = localModels({ directory: models, environment, installation, log: () => {} })
    const engine = local.engine(PRESENT, () => ({}) as Engine)
    const state = () => engine.missingFiles?.()
    const bytes = modelBytes(modelOf(PRESENT)) + runtimeBytes
    assert.deepEqual(state(), { slug: PRESENT, bytes, isArriving: false, isPaused: false })
    assert.equal(local.stateOf(PRESENT).state, 'not_downloaded')

    const failure = Promise.withResolvers<readonly [name: string, reason: string]>()
    const failed = (name: string, reason: string): void => failure.resolve([name, reason])
    local.pullMissing([PRESENT], { progress: () => {}, ready: () => {}, stopped: () => {}, failed })
    assert.equal(state()?.isArriving, true)
    assert.equal(local.stateOf(PRESENT).state, 'downloading')
    const [name, reason] = await within(30_000, 'the fetch fails', failure.promise)
    assert.equal(name, RUNTIME_NAME)
    assert.match(reason, /^Could not fetch the runtime of local models: .*ECONNREFUSED/)

    complete()
    await eventually('the installed package is seen', () => state() === undefined && engine.usable())
    await local.close()
  })
})
