import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it, type TestContext } from 'node:test'
import { findModel, modelPaths } from '../../src/local-models/installed.ts'
import { startDefaultService, type DefaultService } from '../support/default-service.ts'
import { inLongRun } from '../support/long-run.ts'
import { smallDisk } from '../support/small-disk.ts'
import { eventually } from '../support/waiting.ts'
import { OPERATOR_TOKEN } from '../support/weir.ts'
import { fileServer, type FileServer } from './file-server.ts'

/** From the hub only, in two files. */
const MODEL = 'baai/bge-small-en-v1.5'
const FOLDER = '/Xenova/bge-small-en-v1.5/resolve/main'
const weights = randomBytes(6_000_000)
const tokenizer = randomBytes(1000)
/** The first file, as large as the manifest says, and a part of the second. */
const ARRIVED = 1_200_000

interface Entry {
  readonly model: string
  readonly state: string
  readonly received_bytes: number
  readonly bytes: number
  readonly bytes_per_second: number
  readonly problem: string | null
  readonly shared_with: readonly string[]
  readonly catalog_models: readonly string[]
  readonly memory: { readonly needed_bytes: number; readonly available_bytes: number; readonly fits: string }
}

interface Answer {
  status: number
  json: any // oxlint-disable-line typescript/no-explicit-any -- the shape is what the tests are about
}

/** A hub whose files are slow to arrive, so that a test can act in the middle. */
async function hub(t: TestContext, hashOf = weights): Promise<FileServer> {
  const etag = (content: Buffer) => ({ 'x-linked-etag': `"${createHash('sha256').update(content).digest('hex')}"` })
  const server = await fileServer(
    {
      [`${FOLDER}/tokenizer.json`]: { content: tokenizer, headers: etag(tokenizer) },
      [`${FOLDER}/onnx/model_quantized.onnx`]: { content: weights, headers: etag(hashOf) },
    },
    60,
  )
  t.after(() => server.close())
  return server
}

function operatorOf({ service }: DefaultService) {
  const call = async (method: string, path: string, body?: object): Promise<Answer> => {
    const response = await fetch(`${service.adminUrl}/admin/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    return { status: response.status, json: await response.json() }
  }
  const list = async (): Promise<readonly Entry[]> => (await call('GET', '/local-models')).json.data
  return {
    call,
    list,
    order: (what: 'download' | 'pause' | 'remove', model = MODEL) => call('POST', `/local-models/${what}`, { model }),
    entry: async (model = MODEL): Promise<Entry> =>
      (await list()).find((it) => it.model === model) ?? assert.fail(`no ${model}`),
  }
}

describe('the models that the operator can have on this machine', () => {
  let started: DefaultService
  before(async () => {
    started = await startDefaultService()
  })
  after(() => started.stop())

  it('are listed with their sizes, their states and the memory that they need', async () => {
    const { call, entry } = operatorOf(started)
    const { json } = await call('GET', '/local-models')
    assert.equal(json.machine.directory, join(started.folder, 'models'))
    assert.ok(json.machine.disk.reserved_bytes > 0 && json.machine.disk.free_bytes > 0)
    assert.equal(json.machine.memory.budget_bytes, Math.floor(json.machine.memory.machine_bytes / 2))
    assert.deepEqual([json.machine.runtime.state, json.machine.memory.loaded], ['ready', []])
    assert.partialDeepStrictEqual(await entry('weir/starter-vision'), { state: 'ready', shipped: true })
    const absent = await entry('qwen/qwen3-8b')
    assert.partialDeepStrictEqual(absent, {
      state: 'not_downloaded',
      received_bytes: 0,
      problem: null,
      catalog_models: ['qwen/qwen3-8b'],
      requests: 0,
    })
    const { needed_bytes: needed, available_bytes: available, fits } = absent.memory
    assert.equal(fits, needed <= available ? 'now' : 'no')
    assert.deepEqual((await entry('weir/minilm-rerank')).shared_with, [
      'sentence-transformers/all-minilm-l6-v2',
      'weir/minilm-ranking',
    ])
  })

  it('have the reason of a failed download', async () => {
    const { entry } = operatorOf(started)
    const first = 'qwen/qwen2.5-coder-0.5b-instruct'
    await eventually('the download fails', async () => (await entry(first)).state === 'failed', 60_000)
    assert.match((await entry(first)).problem ?? '', /ECONNREFUSED/)
  })

  it('cannot be removed if they are shipped with Weir, nor paused if they are ready, nor unknown', async () => {
    const { order } = operatorOf(started)
    const shipped = await order('remove', 'weir/starter-vision')
    assert.deepEqual(
      [shipped.status, shipped.json.error.message],
      [409, 'weir/starter-vision is shipped with Weir and cannot be removed.'],
    )
    assert.equal((await order('pause', 'weir/starter-vision')).status, 409)
    for (const what of ['download', 'pause', 'remove'] as const) {
      assert.equal((await order(what, 'no/such')).status, 404, what)
    }
  })

  it('are downloaded, paused, resumed with what has arrived, and removed; all of it is audited', async (t) => {
    const server = await hub(t)
    const own = await startDefaultService({ HF_ENDPOINT: server.url })
    t.after(() => own.stop())
    const { order, entry, call } = operatorOf(own)
    assert.equal((await order('download')).json.state, 'downloading')
    await eventually('it arrives', async () => (await entry()).received_bytes > ARRIVED, 60_000)
    await eventually('its speed is known', async () => (await entry()).bytes_per_second > 0, 60_000)
    assert.equal((await entry()).state, 'downloading')

    const paused = (await order('pause')).json
    assert.equal(paused.state, 'paused')
    const asked = server.requests.length
    const part = `${modelPaths(join(own.folder, 'models')).ofRole(findModel(MODEL) ?? assert.fail(), 'model')}.0.part`
    assert.ok(existsSync(part))

    server.setDelay(0)
    await order('download')
    await eventually('it is complete', async () => (await entry()).state === 'ready', 60_000)
    const resumed = server.requests.slice(asked).map(({ range }) => range)
    assert.deepEqual(resumed.length, 1, 'the complete file is not fetched again')
    assert.match(resumed[0] ?? '', /^bytes=[1-9]\d{5,}-$/)

    const removed = await order('remove')
    assert.deepEqual([removed.json.model, removed.json.also_gone], [MODEL, []])
    // With the two files that record where the weights came from.
    assert.ok(removed.json.freed_bytes > weights.length + tokenizer.length)
    assert.partialDeepStrictEqual(await entry(), { state: 'not_downloaded', received_bytes: 0 })

    const { data } = (await call('GET', '/audit-log')).json as { data: { action: string; before: string }[] }
    assert.deepEqual(
      data.map(({ action, before }) => [action, (JSON.parse(before) as { state: string }).state]),
      [
        ['removeModel', 'ready'],
        ['pullModel', 'paused'],
        ['pauseModel', 'downloading'],
        ['pullModel', 'not_downloaded'],
      ],
    )
  })

  it('continue to download after a restart, but stay paused or removed', async (t) => {
    const server = await hub(t)
    const first = await startDefaultService({ HF_ENDPOINT: server.url })
    const { folder } = first
    const fetched = 'sentence-transformers/all-minilm-l6-v2'
    const one = operatorOf(first)
    await one.order('download')
    await one.order('pause', 'qwen/qwen2.5-coder-0.5b-instruct')
    // A download of a first start, which shares its files with others.
    await one.order('remove', fetched)
    await eventually('it arrives', async () => (await one.entry()).received_bytes > ARRIVED, 60_000)
    await first.service.stop()

    const second = await startDefaultService({ HF_ENDPOINT: server.url }, folder)
    t.after(() => second.stop())
    const other = operatorOf(second)
    const states = async () =>
      Promise.all(
        [MODEL, 'qwen/qwen2.5-coder-0.5b-instruct', fetched, 'weir/minilm-rerank'].map(
          async (model) => (await other.entry(model)).state,
        ),
      )
    assert.deepEqual(await states(), ['downloading', 'paused', 'not_downloaded', 'not_downloaded'])
    server.setDelay(0)
    await eventually('it is complete', async () => (await other.entry()).state === 'ready', 60_000)
    assert.deepEqual((await states()).slice(1), ['paused', 'not_downloaded', 'not_downloaded'])
    // Those that were not stopped are tried again.
    const tried = async () => (await other.entry('usefulsensors/moonshine-tiny')).state === 'failed'
    await eventually('another one was tried', tried, 60_000)
  })

  it('continue after a cut connection, and report a file that does not match its hash', inLongRun, async (t) => {
    const server = await hub(t, tokenizer)
    const own = await startDefaultService({ HF_ENDPOINT: server.url })
    t.after(() => own.stop())
    const { order, entry } = operatorOf(own)
    await order('download')
    await eventually('it arrives', async () => (await entry()).received_bytes > ARRIVED, 60_000)
    server.cut()
    await eventually('it is resumed', () => server.requests.some(({ range }) => range !== undefined), 60_000)
    server.setDelay(0)
    await eventually('it fails', async () => (await entry()).state === 'failed', 60_000)
    assert.match((await entry()).problem ?? '', /does not match the hub's hash/)
    assert.ok((await entry()).received_bytes < ARRIVED, 'the wrong file is deleted')
  })

  it('are refused when the disk has no room for them beside the reserve', async (t) => {
    const disk = smallDisk(40_000_000)
    if (!disk) return t.skip('only root may mount a disk')
    const own = await startDefaultService({}, join(disk.folder, 'data'))
    t.after(async () => {
      await own.stop()
      await disk.remove()
    })
    const { status, json } = await operatorOf(own).order('download')
    assert.equal(status, 409)
    assert.match(json.error.message, /^Not enough disk space in .*: 45 MB needed, 11 MB of them kept free/)
    assert.equal((await operatorOf(own).entry()).state, 'not_downloaded')
  })
})
