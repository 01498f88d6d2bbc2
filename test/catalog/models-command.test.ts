import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { models } from '../../src/catalog/commands/models.ts'
import { CommandFailed, UsageError } from '../../src/cli/command.ts'
import { findModel, modelBytes } from '../../src/local-models/installed.ts'
import { modelFiles } from '../../src/local-models/files/model-files.ts'
import { openStoreHere } from '../../src/store/open.ts'
import { printed } from '../support/printed.ts'

const LOCAL = 'qwen/qwen2.5-coder-0.5b-instruct'

/** A catalog with a model that Weir runs itself under a name of the operator's, one at a server, and one without an engine. */
function stage(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'weir-models-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const config = join(folder, 'weir.yaml')
  const [dataDir, data] = [join(folder, 'data'), ['--data', join(folder, 'data')]]
  const entry = { categories: ['llm'], context_length: 4096 }
  const catalog = [
    { ...entry, id: 'own/coder', aliases: ['coder'], serverless: { engine: { kind: 'embedded', model: LOCAL } } },
    {
      ...entry,
      id: 'meta/a',
      name: 'A',
      pricing: { input_per_million: '1' },
      dedicated: [{ workspace: 'acme', engine: { kind: 'vllm', urls: ['http://127.0.0.1:9'] } }],
    },
    { ...entry, id: 'meta/b', serverless: {} },
  ]
  writeFileSync(config, JSON.stringify({ models: catalog }))
  const run = (...args: string[]) => printed(models, ...args, '--config', config, ...data)
  return {
    dataDir,
    run,
    async json(...args: string[]): Promise<Readonly<Record<string, unknown>>> {
      const { stdout, failure } = await run(...args, '--json')
      assert.equal(failure, undefined)
      return JSON.parse(stdout) as Readonly<Record<string, unknown>>
    },
  }
}

describe('weir models', () => {
  it('lists the models with where each runs, its state and its size', async (t) => {
    const { json } = stage(t)
    const { object, data } = await json('list')
    const free = { input_per_million: '0.00', output_per_million: '0.00' }
    const common = {
      aliases: [],
      categories: ['llm'],
      modes: ['serverless'],
      endpoints: ['/chat/completions'],
      context_length: 4096,
      pricing: free,
      size_mb: null,
      received_bytes: null,
      problem: null,
    }
    const sizeMb = Math.round(modelBytes(findModel(LOCAL)!) / 1_000_000)
    assert.ok(sizeMb > 100 && sizeMb < 1000)
    assert.equal(object, 'list')
    assert.deepEqual(data, [
      {
        ...common,
        id: 'own/coder',
        name: 'own/coder',
        aliases: ['coder'],
        engine: 'embedded',
        state: 'not downloaded',
        size_mb: sizeMb,
        received_bytes: 0,
      },
      {
        ...common,
        id: 'meta/a',
        name: 'A',
        modes: ['dedicated'],
        pricing: { ...free, input_per_million: '1.00' },
        engine: 'vllm',
        state: 'remote',
      },
      { ...common, id: 'meta/b', name: 'meta/b', engine: null, state: 'no engine' },
    ])
  })

  it('pauses a download under any name of the model, until it is removed', async (t) => {
    const { json, run, dataDir } = stage(t)
    for (const name of ['coder', 'own/coder', LOCAL]) {
      assert.deepEqual(await json('pause', name), { model: LOCAL, state: 'paused', received_bytes: 0 })
    }
    const files = () => modelFiles(join(dataDir, 'models'), { environment: {} })
    assert.equal(files().orderOf(LOCAL), 'pause')
    const model = findModel(LOCAL) ?? assert.fail()
    const part = join(dataDir, 'models', `${model.files[0]?.path}.0.part`)
    mkdirSync(dirname(part), { recursive: true })
    writeFileSync(part, '')
    for (const [share, percent] of [
      [0, 0],
      [0.299, 29],
      [0.999, 99],
    ] as const) {
      // Sparse: only its length counts.
      truncateSync(part, Math.round(share * modelBytes(model)))
      assert.match((await run('list')).stdout, new RegExp(`^own/coder +llm +paused, ${percent}% `, 'm'))
    }
    rmSync(part)
    const removed = await json('remove', 'coder')
    assert.deepEqual(removed, { model: LOCAL, removed: [], also_gone: [], freed_bytes: 0 })
    assert.equal(existsSync(join(dataDir, 'weir.db')), false, 'no ledger is created')
  })

  it('puts what it does on record if there is a ledger', async (t) => {
    const { json, dataDir } = stage(t)
    await (await openStoreHere({ dataDir, exclusive: false })).close()
    await json('pause', 'coder')
    const store = await openStoreHere({ dataDir, exclusive: false })
    t.after(() => store.close())
    const [entry] = await store.auditLog({ limit: 1 })
    assert.deepEqual(
      [entry?.action, entry?.subject, entry?.request, entry?.outcome],
      ['pauseModel', LOCAL, null, 'done'],
    )
    const states = [entry?.before, entry?.after].map((text) => JSON.parse(text ?? '') as object)
    assert.deepEqual(states, [
      { state: 'not downloaded', received_bytes: 0 },
      { state: 'paused', received_bytes: 0 },
    ])
  })

  it('refuses what it cannot do, and says why', async (t) => {
    const { run } = stage(t)
    for (const [line, message] of [
      ['', /^choose an action: list, pull, add, pause or remove$/],
      ['fetch x', /^choose an action/],
      ['pull', /^give the slug of a model: weir models pull SLUG$/],
      ['list x', /unexpected argument "x"/],
      ['pause none/none', /none\/none/],
      ['pause meta/a', /meta\/a/],
      ['list --id a/b', /^--id and --context are for models of your own/],
      ['pause coder --context 5', /^--id and --context are for models of your own/],
    ] as const) {
      const { failure, stdout } = await run(...line.split(' ').filter(Boolean))
      assert.ok(failure instanceof UsageError && !(failure instanceof CommandFailed), line)
      assert.match(failure.message, message, line)
      assert.equal(stdout, '')
    }
  })
})
