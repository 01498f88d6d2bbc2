import assert from 'node:assert/strict'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import type { Catalog } from '../../src/catalog/catalog.ts'
import { downloadList } from '../../src/local-models/downloads.ts'
import { RUNTIME_NAME } from '../../src/local-models/files/runtime-files.ts'
import { findModel, manifest, modelBytes, runtimeBytes } from '../../src/local-models/installed.ts'
import type { LocalModels } from '../../src/local-models/local-models.ts'
import { operatorModels } from '../../src/local-models/operator-models.ts'
import { localModelRoutes } from '../../src/local-models/routes/local-models.ts'
import { reservedBytes } from '../../src/shared/disk-room.ts'
import { askDocumented } from '../support/route-answer.ts'

const EMBEDDING = 'sentence-transformers/all-minilm-l6-v2'
const RERANKER = 'weir/minilm-rerank'
const needed = findModel(EMBEDDING)?.memoryBytes ?? assert.fail()

/** A machine whose memory, and whose requests, are what the test says. */
function stage() {
  const set = {
    budgetBytes: 10 * needed,
    loaded: [] as { model: string; bytes: number; requests: number }[],
    load: { inFlightRequests: 0, queueDepth: 0 },
    state: 'ready',
    problem: undefined as string | undefined,
    freeBytes: 1,
  }
  const removed: string[] = []
  const local = {
    sharing: (slug: string) => [EMBEDDING, RERANKER].filter((it) => it !== slug),
    stateOf: () => ({ state: set.state, isWaiting: true, receivedBytes: 1, problem: set.problem }),
    memory: async () => ({
      cores: 1,
      memoryBytes: 2 * set.budgetBytes,
      budgetBytes: set.budgetBytes,
      loaded: { onnx: set.loaded, llama: [{ model: 'a/chat', bytes: 10 * needed, requests: 0 }] },
    }),
    async remove(slug: string) {
      removed.push(slug)
      return { removed: [], alsoGone: [RERANKER], freedBytes: 7 }
    },
    runtimeState: () => 'downloading',
    pause: (slug: string) => removed.push(`pause ${slug}`),
    download: (slug: string) => (slug === RERANKER ? Promise.reject(new Error('the disk is full')) : Promise.resolve()),
  } as unknown as LocalModels
  const engine = { kind: 'embedded', model: 'minilm' }
  const catalog = {
    models: () => [
      { id: 'our/vectors', serverless: { lane: 'our/vectors', engine }, dedicated: [] },
      { id: 'no/engine', dedicated: [] },
    ],
  } as unknown as Catalog
  let now = 0
  const downloads = downloadList(() => now)
  const models = operatorModels({
    local,
    downloads,
    catalog,
    load: () => new Map([['our/vectors', set.load]]),
    diskSpace: async () => ({ size: 100_001, free: set.freeBytes }),
    directory: join(tmpdir(), 'weir', '..'),
  })
  const routes = localModelRoutes({ localModels: models })
  const call = (request: string, body?: object) => askDocumented(routes, request, body ? { body } : {})
  return { set, models, removed, downloads, call, pass: (ms: number) => void (now += ms) }
}

describe('local models, for the operator', () => {
  it('fit the memory now, after others are unloaded, or not at all; those of the other runtime do not count', async () => {
    const { set, models } = stage()
    const memory = async () => {
      const { fits, availableBytes, isLoaded } = await models.find(EMBEDDING)
      return [fits, availableBytes, isLoaded]
    }
    set.budgetBytes = needed
    assert.deepEqual(await memory(), ['now', needed, false])
    set.loaded = [{ model: RERANKER, bytes: 1, requests: 0 }]
    assert.deepEqual(await memory(), ['after_unloading', needed - 1, false])
    set.loaded = [{ model: EMBEDDING, bytes: needed, requests: 0 }]
    assert.deepEqual(await memory(), ['now', needed, true], 'its own memory is free for it')
    set.budgetBytes = needed - 1
    assert.deepEqual(await memory(), ['no', needed - 1, true])
    set.loaded = [{ model: RERANKER, bytes: 2 * needed, requests: 0 }]
    assert.deepEqual(await memory(), ['no', 0, false])
  })

  it('name the models of the catalog that run on them, by whatever name', async () => {
    const { models } = stage()
    assert.deepEqual((await models.find(EMBEDDING)).catalogModels, ['our/vectors'])
    assert.deepEqual((await models.find(RERANKER)).catalogModels, [])
  })

  it('cannot be removed while requests run or wait, also those to models with the same files', async () => {
    const { set, models, removed } = stage()
    set.load = { inFlightRequests: 1, queueDepth: 2 }
    assert.equal((await models.find(EMBEDDING)).requests, 3)
    await assert.rejects(models.remove(RERANKER), {
      code: 'conflict',
      message: `${RERANKER} is in use: 3 requests run or wait. Try again when they have ended.`,
    })
    set.load = { inFlightRequests: 0, queueDepth: 1 }
    await assert.rejects(models.remove(EMBEDDING), /in use: 1 request runs or waits\./)
    assert.deepEqual(removed, [])
    set.load = { inFlightRequests: 0, queueDepth: 0 }
    await models.remove('minilm')
    assert.deepEqual(removed, [EMBEDDING])
  })

  it('are listed with their machine and the runtime', async () => {
    const { models, downloads, set } = stage()
    downloads.progress({ slug: RUNTIME_NAME, receivedBytes: 7, totalBytes: 9 })
    const { machine, models: all } = await models.list()
    const { memory, ...others } = machine
    assert.deepEqual(others, {
      host: hostname(),
      directory: tmpdir(),
      disk: { size: 100_001, free: 1, reserved: reservedBytes(100_001) },
      runtime: { state: 'downloading', bytes: runtimeBytes, receivedBytes: 7 },
    })
    assert.equal(memory.budgetBytes, set.budgetBytes)
    assert.deepEqual(
      all.map(({ model }) => model.catalog.id),
      manifest.map(({ catalog }) => catalog.id),
    )
    const found = all.find(({ model }) => model.catalog.id === EMBEDDING)
    assert.deepEqual(
      [found?.state, found?.bytes, found?.sharedWith, found?.bytesPerSecond],
      ['ready', modelBytes(found!.model), [RERANKER], 0],
    )
  })

  it('are downloaded and paused, with the reason where that cannot be', async () => {
    const { models, set, removed } = stage()
    await models.download(EMBEDDING)
    await assert.rejects(models.download(RERANKER), { code: 'conflict', message: 'the disk is full', param: 'model' })
    await assert.rejects(models.pause(EMBEDDING), { code: 'conflict', param: 'model' })
    assert.deepEqual(removed, [])
    set.state = 'downloading'
    await models.pause('minilm')
    assert.deepEqual(removed, [`pause ${EMBEDDING}`])
  })

  it('are those of Weir: a file of the operator is none of them, and what is shipped stays', async () => {
    const { models } = stage()
    for (const slug of ['no/such', 'gguf-chat@1024:/models/own.gguf'])
      await assert.rejects(models.find(slug), { code: 'not_found', param: 'model' })
    const shipped = manifest.find(({ delivery }) => delivery === 'box')?.catalog.id ?? assert.fail()
    await assert.rejects(models.remove(shipped), { code: 'conflict', param: 'model' })
  })
})

describe('local models, over the API', () => {
  it('are listed with their machine', async () => {
    const { call, set, downloads, pass } = stage()
    set.loaded = [{ model: EMBEDDING, bytes: 5, requests: 2 }]
    set.load = { inFlightRequests: 1, queueDepth: 2 }
    set.problem = 'no route'
    for (const receivedBytes of [0, 500]) {
      downloads.progress({ slug: EMBEDDING, receivedBytes, totalBytes: 1000 })
      pass(1000)
    }
    downloads.progress({ slug: RUNTIME_NAME, receivedBytes: 7, totalBytes: 9 })
    const { object, data, machine } = (await call('GET /admin/v1/local-models')).body
    assert.deepEqual([object, data.length], ['list', manifest.length])
    assert.deepEqual(machine, {
      host: hostname(),
      directory: tmpdir(),
      disk: { size_bytes: 100_001, free_bytes: 1, reserved_bytes: Math.round(reservedBytes(100_001)) },
      memory: {
        machine_bytes: 20 * needed,
        budget_bytes: 10 * needed,
        loaded: [
          { model: EMBEDDING, bytes: 5, requests: 2, runtime: 'onnx' },
          { model: 'a/chat', bytes: 10 * needed, requests: 0, runtime: 'llama' },
        ],
      },
      runtime: { state: 'downloading', bytes: runtimeBytes, received_bytes: 7 },
    })
    const model = findModel(EMBEDDING) ?? assert.fail()
    assert.deepEqual(
      data.find((it: { model: string }) => it.model === EMBEDDING),
      {
        model: EMBEDDING,
        name: model.catalog.name,
        categories: model.catalog.categories,
        license: model.license,
        catalog_models: ['our/vectors'],
        shipped: false,
        state: 'ready',
        waiting: true,
        bytes: modelBytes(model),
        received_bytes: 1,
        bytes_per_second: 250,
        problem: 'no route',
        shared_with: [RERANKER],
        memory: { needed_bytes: needed, available_bytes: 10 * needed, fits: 'now', loaded: true },
        requests: 3,
      },
    )
    const shipped = data.filter((it: { shipped: boolean }) => it.shipped).map((it: { model: string }) => it.model)
    assert.deepEqual(
      shipped,
      manifest.filter(({ delivery }) => delivery === 'box').map(({ catalog }) => catalog.id),
    )
  })

  it('are downloaded, paused and removed on record', async () => {
    const { call, set, removed } = stage()
    set.state = 'downloading'
    const order = (what: string, model = 'minilm') => call(`POST /admin/v1/local-models/${what}`, { model })
    const state = { model: EMBEDDING, state: 'downloading', received_bytes: 1 }
    const record = { subject: '', body: { model: 'minilm' }, state }
    for (const [what, action] of [
      ['download', 'pullModel'],
      ['pause', 'pauseModel'],
    ] as const) {
      const { body, recorded } = await order(what)
      assert.deepEqual([body.model, body.problem], [EMBEDDING, null])
      assert.deepEqual(recorded, [{ action, ...record }])
    }
    const { body, recorded } = await order('remove')
    assert.deepEqual(body, { model: EMBEDDING, freed_bytes: 7, also_gone: [RERANKER] })
    assert.deepEqual(recorded, [{ action: 'removeModel', ...record }])
    assert.deepEqual(removed, [`pause ${EMBEDDING}`, EMBEDDING])
    await assert.rejects(order('download', RERANKER), { code: 'conflict' })
    for (const model of ['', 'x'.repeat(201)]) await assert.rejects(order('download', model), { code: 'invalid_value' })
    await assert.rejects(order('download', 'x'.repeat(200)), { code: 'not_found' })
  })
})
