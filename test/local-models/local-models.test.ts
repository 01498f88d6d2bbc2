import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { modelFiles } from '../../src/local-models/files/model-files.ts'
import { RUNTIME_NAME } from '../../src/local-models/files/runtime-files.ts'
import { findModel, modelBytes, runtimeBytes } from '../../src/local-models/installed.ts'
import { localModels } from '../../src/local-models/local-models.ts'
import type { Engine } from '../../src/engines/engine.ts'
import { smallDisk } from '../support/small-disk.ts'
import { eventually, within } from '../support/waiting.ts'
import { fileServer, type ServedFile } from './file-server.ts'

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
    let failures = 0
    const failed = (name: string, reason: string): void => {
      failures++
      failure.resolve([name, reason])
    }
    local.pullMissing([PRESENT], { progress: () => {}, ready: () => {}, stopped: () => {}, failed })
    assert.equal(state()?.isArriving, true)
    assert.equal(local.stateOf(PRESENT).state, 'downloading')
    const [name, reason] = await within(30_000, 'the fetch fails', failure.promise)
    assert.equal(name, RUNTIME_NAME)
    assert.match(reason, /^Could not fetch the runtime of local models: .*ECONNREFUSED/)
    await local.download(PRESENT)
    await eventually('it is tried again at once, because the operator asks for a model', () => failures === 2, 25_000)

    complete()
    await eventually('the installed package is seen', () => state() === undefined && engine.usable())
    await local.close()
  })

  it('leave the memory of their host when they are removed, here or by another process; a closed service leaves no socket', async (t) => {
    const { installation, complete } = incompleteInstallation()
    complete()
    const models = join(directory, 'in-memory')
    putIn(models, PRESENT)
    t.mock.timers.enable({ apis: ['setInterval'] })
    const local = localModels({ directory: models, environment: process.env, installation, log: () => {} })
    let socketPath = ''
    const engine = local.engine(PRESENT, (path) => ((socketPath = path), {} as Engine))
    assert.equal(engine.usable(), true)
    const asked: string[] = []
    const loaded = [{ model: PRESENT, bytes: 5, requests: 0 }]
    const host = createServer((request, response) => {
      void text(request).then((body) => {
        asked.push(`${request.method} ${request.url} ${body}`)
        response.end(JSON.stringify({ loaded }))
      })
    })
    mkdirSync(dirname(socketPath))
    t.after(() => host.close())
    await once(host.listen(socketPath), 'listening')
    assert.deepEqual((await local.memory()).loaded, { onnx: loaded, llama: [] })
    await local.remove(PRESENT)
    assert.equal(engine.usable(), false, 'its requests are refused from then on')
    await eventually('the host is asked to unload it', () => asked.length > 1)
    const unload = `POST /unload {"model":"${PRESENT}"}`
    assert.deepEqual(asked, ['GET /health ', unload])

    /** Another process downloads it, and removes it again. */
    const comesAndGoes = (): void => {
      putIn(models, PRESENT)
      t.mock.timers.tick(1000)
      rmSync(models, { recursive: true })
      t.mock.timers.tick(1000)
    }
    comesAndGoes()
    await eventually('the host is asked to unload it', () => asked.length > 2)
    await local.close()
    comesAndGoes()
    assert.deepEqual(asked.slice(2), [unload])
    assert.equal(existsSync(dirname(socketPath)), false)
    putIn(models, PRESENT)
    t.mock.timers.tick(1000)
    assert.equal(engine.usable(), false, 'it does not look at the disk any more')
  })

  it('are not ordered if the disk has no room for them', async (t) => {
    const disk = smallDisk(40_000_000)
    if (!disk) return t.skip('only root may mount a disk')
    t.after(() => disk.remove())
    const { installation, complete } = incompleteInstallation()
    complete()
    const local = localModels({ directory: disk.folder, environment: process.env, installation, log: () => {} })
    t.after(() => local.close())
    await assert.rejects(local.download('openai/whisper-base'), /Not enough disk space/)
    assert.equal(local.stateOf('openai/whisper-base').state, 'not_downloaded')
    assert.equal(modelFiles(disk.folder, { environment: process.env }).orderOf('openai/whisper-base'), undefined)
  })

  it('are paused and resumed together if they have the same files', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const environment = { ...process.env, npm_config_registry: NOWHERE, HF_ENDPOINT: NOWHERE }
    const { installation, complete } = incompleteInstallation()
    complete()
    const models = join(directory, 'alike')
    const local = localModels({ directory: models, environment, installation, log: () => {} })
    const alike = [PRESENT, 'weir/minilm-rerank', 'weir/minilm-ranking']
    const engine = local.engine(PRESENT, () => ({}) as Engine)
    const stopped: string[] = []
    const stoppedOne = (slug: string): void => void stopped.push(slug)
    const events = { progress: () => {}, ready: () => {}, failed: () => {}, stopped: stoppedOne }
    local.pullMissing(['openai/whisper-base', ...alike], events)
    local.pause(PRESENT)
    assert.deepEqual(stopped, alike)
    for (const slug of alike)
      assert.deepEqual(local.stateOf(slug), { state: 'paused', isWaiting: false, receivedBytes: 0, problem: undefined })
    t.mock.timers.tick(1000)
    // As when the service starts again.
    local.pullMissing(alike, events)
    assert.partialDeepStrictEqual(engine.missingFiles?.(), { isPaused: true, isArriving: false })
    await local.download(PRESENT)
    assert.deepEqual(
      [engine.missingFiles?.()?.isPaused, ...alike.map((slug) => local.stateOf(slug).state)],
      [false, 'downloading', 'not_downloaded', 'not_downloaded'],
    )
    await local.close()
  })

  it('have why their download failed until it goes on by itself; their order ends with it, and the download with its service', async (t) => {
    const slug = 'baai/bge-small-en-v1.5'
    const content = randomBytes(200_000)
    const headers = { 'x-linked-etag': createHash('sha256').update(content).digest('hex') }
    const folder = '/Xenova/bge-small-en-v1.5/resolve/main'
    const served: Record<string, ServedFile> = {}
    const hub = await fileServer(served, 60)
    t.after(() => hub.close())
    const { installation, complete } = incompleteInstallation()
    complete()
    const environment = { ...process.env, HF_ENDPOINT: hub.url }
    const models = join(directory, 'failing')
    const start = (address: string) =>
      localModels({
        directory: models,
        environment: { ...environment, HF_ENDPOINT: address, npm_config_registry: address },
        installation,
        log: () => {},
      })
    const local = start(hub.url)
    t.after(() => local.close())
    const ended: string[] = []
    const [ready, failed] = ['ready', 'failed'].map((how) => (name: string) => void ended.push(`${how} ${name}`))
    const engine = local.engine(slug, () => ({}) as Engine)
    const wasUsable: boolean[] = []
    const events = {
      progress: () => {},
      ready(name: string) {
        wasUsable.push(engine.usable())
        ready!(name)
      },
      failed: failed!,
      stopped: () => {},
    }
    local.pullMissing([], events)
    let tryAgain = (): void => assert.fail('it is not tried again')
    const { setTimeout } = globalThis
    t.mock.method(globalThis, 'setTimeout', (work: () => void, ms: number) => {
      if (ms === 30_000) tryAgain = work
      return setTimeout(ms === 30_000 ? () => {} : work, ms)
    })
    await local.download(slug)
    await eventually('it fails', () => ended.length > 0, 60_000)
    assert.match(local.stateOf(slug).problem ?? '', /answered 404/)
    const { orderOf } = modelFiles(models, { environment })
    const { state, isWaiting } = local.stateOf(slug)
    assert.deepEqual([state, isWaiting, orderOf(slug)], ['failed', false, 'download'])

    served[`${folder}/tokenizer.json`] = served[`${folder}/onnx/model_quantized.onnx`] = { content, headers }
    tryAgain()
    await eventually('it goes on by itself', () => local.stateOf(slug).state === 'downloading', 60_000)
    assert.equal(local.stateOf(slug).problem, undefined)
    hub.setDelay(0)
    await eventually('it is there', () => ended.length > 1, 60_000)
    assert.deepEqual(ended, [`failed ${slug}`, `ready ${slug}`])
    assert.deepEqual(wasUsable, [true], 'its requests are served from then on')
    assert.deepEqual([local.stateOf(slug).state, orderOf(slug)], ['ready', undefined])
    await local.remove(slug)

    const silent = createServer(() => {}).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    t.after(() => silent.close() && silent.closeAllConnections())
    const hasCaller = (): Promise<boolean> =>
      new Promise((resolve) => silent.getConnections((_error, count) => resolve(count > 0)))
    const other = start(`http://127.0.0.1:${(silent.address() as AddressInfo).port}`)
    modelFiles(models, { environment }).setOrder(slug, 'download')
    other.pullMissing(['openai/whisper-tiny'], { ...events, stopped: () => ended.push('stopped') })
    assert.deepEqual(
      ['openai/whisper-tiny', slug].map((it) => other.stateOf(it).isWaiting),
      [false, false],
      'one that was asked for waits for no other',
    )
    await eventually('it runs', hasCaller, 60_000)
    await other.close()
    await eventually('it has ended', async () => !(await hasCaller()))
    assert.equal(ended.length, 2, 'a service that stops reports neither a failure nor an end')
  })
})
