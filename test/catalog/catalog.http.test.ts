import assert from 'node:assert/strict'
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { stringify } from 'yaml'
import { openCatalog, type FilePolling } from '../../src/catalog/catalog.ts'
import { parseCatalog } from '../../src/catalog/file.ts'
import { refusalOf, roomyLimits, stageConfig } from '../support/chat-stage.ts'
import { commandLine } from '../support/command-line.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { sharedWeir } from '../support/shared-stage.ts'
import { modelEntry, readEvents, startWeir, type TestWeir } from '../support/weir.ts'
import { eventually, gate } from '../support/waiting.ts'

interface Entry {
  readonly id: string
  readonly available: boolean
  readonly unavailable_reason?: string
  readonly pricing: Record<string, unknown>
  readonly [field: string]: unknown
}

let shared: ScriptedEngine
let reserved: ScriptedEngine
let weir: TestWeir
let acme: string

const engineAt = (engine: ScriptedEngine): object => ({ kind: 'openai', urls: [engine.url], model: 'engine-name' })
const serverless = (engine: ScriptedEngine): object => ({ engine: engineAt(engine), limits: roomyLimits })
/** Reserved for acme, by the hour. */
const dedicated = (engine: ScriptedEngine): object[] => [
  { workspace: 'acme', engine: engineAt(engine), limits: roomyLimits, per_hour: '12.50' },
]

before(async () => {
  shared = await scriptedEngine()
  reserved = await scriptedEngine()
  const model = (id: string, changes: object): object => modelEntry([], { id, aliases: [], ...changes })
  weir = await startWeir({
    rate_limit: { requests_per_minute: 100_000 },
    models: [
      modelEntry([shared.url], { description: 'A model for tests.', tokenizer: 'Llama3' }),
      model('meta/eye', {
        categories: ['llm', 'vision'],
        supported_parameters: ['temperature'],
        serverless: serverless(shared),
      }),
      model('baai/embed', { categories: ['embedding'], supported_parameters: [], serverless: serverless(shared) }),
      model('meta/both', { serverless: serverless(shared), dedicated: dedicated(reserved) }),
      model('meta/reserved', { aliases: ['hall'], serverless: undefined, dedicated: dedicated(reserved) }),
      model('meta/secret', { aliases: ['hush'], visible_to: ['acme'], serverless: serverless(shared) }),
      model('meta/without', { serverless: {} }),
      model('meta/announced', { serverless: undefined }),
    ],
  })
  await weir.admin('POST', '/admin/v1/workspaces', { name: 'acme' })
  acme = ((await (await weir.admin('POST', '/admin/v1/keys', { workspace: 'acme' })).json()) as { key: string }).key
})
after(async () => {
  await weir.stop()
  await Promise.all([shared.close(), reserved.close()])
})

async function list(query = '', key = weir.key): Promise<Entry[]> {
  const response = await weir.call(`/models${query}`, { key })
  const body = (await response.json()) as { object: string; data: Entry[] }
  assert.equal(response.status, 200, JSON.stringify(body))
  assert.equal(body.object, 'list')
  return body.data
}

const idsOf = (entries: readonly Entry[]): string[] => entries.map(({ id }) => id)

async function entry(id: string, key?: string): Promise<Entry> {
  const found = (await list('?scope=catalog', key)).find((it) => it.id === id)
  return found ?? assert.fail(`${id} is not in the catalog`)
}

describe('GET /models', () => {
  it('[L1, C2, M6] lists models with every field, prices as exact decimals', async () => {
    const [first] = await list()
    assert.ok(first)
    const { created, ...rest } = first
    assert.ok(Math.abs(Number(created) - Date.now() / 1000) < 300, 'seconds')
    assert.deepEqual(rest, {
      id: 'meta/test-8b',
      object: 'model',
      owned_by: 'meta',
      name: 'Test 8B',
      context_length: 8192,
      max_completion_tokens: 4096,
      default_max_tokens: 256,
      architecture: {
        modality: 'text->text',
        input_modalities: ['text'],
        output_modalities: ['text'],
        tokenizer: 'Llama3',
        instruct_type: null,
      },
      pricing: {
        currency: 'AUD',
        tax: 'excl_gst',
        prompt: '0.0000002',
        completion: '0.0000006',
        input_cache_read: '0.00000005',
        per_million_tokens: { input: '0.20', output: '0.60', cached_input: '0.05' },
        per_image: null,
        image_prices: [],
        batch: null,
        per_audio_minute: null,
        dedicated_per_hour: null,
      },
      model_categories: ['llm'],
      supported_parameters: [
        'temperature',
        'top_p',
        'stop',
        'seed',
        'tools',
        'tool_choice',
        'response_format',
        'n',
        'logprobs',
      ],
      modes: ['serverless'],
      endpoints: ['/chat/completions'],
      available: true,
    })
  })

  it('[L2] lists by default what the key can call now', async () => {
    assert.deepEqual(idsOf(await list()), ['meta/test-8b', 'meta/eye', 'baai/embed', 'meta/both'])
    assert.deepEqual(idsOf(await list('?scope=callable')), idsOf(await list()))
    assert.deepEqual(idsOf(await list('', acme)), [
      'meta/test-8b',
      'meta/eye',
      'baai/embed',
      'meta/both',
      'meta/reserved',
      'meta/secret',
    ])
    // Every listed model can be called; its category decides on which endpoint.
    for (const { id, endpoints } of await list('', acme)) {
      if (!(endpoints as string[]).includes('/chat/completions')) continue
      const response = await weir.chat({ model: id }, { key: acme })
      assert.equal(response.status, 200, await response.text())
    }
  })

  it('[L2] lists every model with scope=catalog, and why some cannot be called', async () => {
    const entries = await list('?scope=catalog')
    assert.deepEqual(
      entries.map(({ id, available, unavailable_reason: reason }) => [id, available, reason]),
      [
        ['meta/test-8b', true, undefined],
        ['meta/eye', true, undefined],
        ['baai/embed', true, undefined],
        ['meta/both', true, undefined],
        ['meta/reserved', false, 'model_access_denied'],
        ['meta/without', false, 'model_not_configured'],
        ['meta/announced', false, 'model_not_configured'],
      ],
    )
  })

  it('[C6] filters by category, mode and parameters, and by all of them at once', async () => {
    assert.deepEqual(idsOf(await list('?category=vision')), ['meta/eye'])
    assert.deepEqual(idsOf(await list('?category=embedding')), ['baai/embed'])
    assert.deepEqual(idsOf(await list('?category=audio')), [])
    assert.deepEqual(idsOf(await list('?mode=dedicated')), ['meta/both'])
    assert.deepEqual(idsOf(await list('?mode=dedicated&scope=catalog')), ['meta/both', 'meta/reserved'])
    assert.deepEqual(idsOf(await list('?supported_parameters=temperature,tools')), ['meta/test-8b', 'meta/both'])
    assert.deepEqual(idsOf(await list('?supported_parameters=temperature')), ['meta/test-8b', 'meta/eye', 'meta/both'])
    assert.deepEqual(idsOf(await list('?supported_parameters=top_k')), [])
    assert.deepEqual(idsOf(await list('?supported_parameters=')), idsOf(await list()))
    assert.deepEqual(
      idsOf(await list('?category=llm&mode=serverless&supported_parameters=temperature&scope=catalog')),
      ['meta/test-8b', 'meta/eye', 'meta/both', 'meta/without'],
    )
  })

  for (const parameter of ['scope', 'category', 'mode', 'supported_parameters']) {
    it(`[X1] refuses a bad ${parameter}, and lists what is allowed`, async () => {
      for (const value of ['nonsense', 'LLM', '__proto__', 'temperature,nonsense']) {
        const refusal = await refusalOf(await weir.call(`/models?${parameter}=${value}`))
        assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, 'invalid_value', parameter], value)
        assert.match(refusal.message, /must be (one of|a comma list)/)
      }
    })
  }
})

describe('one model', () => {
  const paths = (name: string): string[] => [
    `/models/detail?slug=${encodeURIComponent(name)}`,
    `/models/detail?slug=${name}`,
    `/models/${name}`,
    `/models/${encodeURIComponent(name)}`,
  ]

  it('[L3, C3] is the entry of the list with more fields, by slug or short id, on either path', async () => {
    const [inList] = await list()
    for (const path of [...paths('meta/test-8b'), ...paths('test-8b')]) {
      const response = await weir.call(path)
      assert.equal(response.status, 200, path)
      const { description, aliases, queue_limits: limits, ...rest } = (await response.json()) as Entry
      assert.deepEqual(rest, inList, path)
      assert.equal(description, 'A model for tests.')
      assert.deepEqual(aliases, ['test-8b'])
      assert.deepEqual(limits, {
        token_budget: 100_000,
        max_concurrent_requests: 8,
        max_queue_depth: 16,
        max_wait_ms: 5000,
      })
    }
  })

  it('[L3] is described even if it cannot be called', async () => {
    const response = await weir.call('/models/detail?slug=meta/reserved')
    const { available, queue_limits: limits } = (await response.json()) as Entry
    assert.deepEqual([response.status, available, limits], [200, false, null])
  })

  it('[X1] is 404 if it does not exist, and 400 if it is not named', async () => {
    for (const name of ['meta/none', 'none', 'Meta/test-8b', 'meta/test-8b/', '%25', 'constructor']) {
      for (const path of paths(name)) {
        const refusal = await refusalOf(await weir.call(path))
        assert.deepEqual([refusal.status, refusal.code, refusal.param], [404, 'model_not_found', 'slug'], path)
      }
    }
    const { message } = await refusalOf(await weir.call(`/models/${'n'.repeat(201)}`))
    assert.equal(message, `The model '${'n'.repeat(200)}' does not exist.`)
    const broken = await refusalOf(await weir.call('/models/%E0%A4%A'))
    assert.deepEqual([broken.status, broken.code], [404, 'model_not_found'])
    for (const path of ['/models/detail', '/models/detail?slug=', '/models/']) {
      const refusal = await refusalOf(await weir.call(path))
      assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, 'missing_required_parameter', 'slug'], path)
    }
  })

  it('[C3, C2] answers by its short id everywhere, and responses echo the slug', async () => {
    const response = await weir.chat({ model: 'test-8b' })
    assert.equal(((await response.json()) as { model: string }).model, 'meta/test-8b')
    for (const data of await readEvents(await weir.chat({ model: 'test-8b', stream: true }))) {
      if (data !== '[DONE]') assert.equal((JSON.parse(data) as { model: string }).model, 'meta/test-8b')
    }
    const rows = await weir.ledger()
    assert.equal(rows.at(-1)?.model, 'meta/test-8b')
    const denied = await refusalOf(await weir.chat({ model: 'hall' }))
    assert.equal(denied.code, 'model_access_denied')
  })
})

describe('a model that only some workspaces can see', () => {
  it('[L2] exists for them, and does not exist for others', async () => {
    assert.ok(idsOf(await list('', acme)).includes('meta/secret'))
    for (const name of ['meta/secret', 'hush']) {
      const response = await weir.chat({ model: name }, { key: acme })
      assert.equal(response.status, 200, await response.text())
      const chat = await refusalOf(await weir.chat({ model: name }))
      assert.deepEqual([chat.status, chat.code, chat.param], [404, 'model_not_found', 'model'])
      assert.equal((await refusalOf(await weir.call(`/models/${name}`))).code, 'model_not_found')
      assert.equal((await refusalOf(await weir.call(`/models/detail?slug=${name}`))).code, 'model_not_found')
    }
    assert.ok(!idsOf(await list('?scope=catalog')).includes('meta/secret'))
    const queues = async (key: string): Promise<string> => (await weir.call('/queue/status', { key })).text()
    assert.ok((await queues(acme)).includes('meta/secret'))
    assert.ok(!(await queues(weir.key)).includes('meta/secret'))
  })
})

describe('reserved capacity', () => {
  it('[C4, C5] can only be called by its workspace', async () => {
    const before = [shared.calls.length, reserved.calls.length]
    const own = await weir.chat({ model: 'meta/reserved' }, { key: acme })
    assert.equal(own.status, 200, await own.text())
    const other = await refusalOf(await weir.chat({ model: 'meta/reserved' }))
    assert.deepEqual(
      [other.status, other.type, other.code, other.param, other.retryAfter],
      [403, 'permission_error', 'model_access_denied', 'model', null],
    )
    assert.deepEqual([shared.calls.length, reserved.calls.length], [before[0], (before[1] ?? 0) + 1])
  })

  it('[C4, C5] takes precedence for its workspace if the model is shared too, and has its own queue', async () => {
    const before = [shared.calls.length, reserved.calls.length]
    await (await weir.chat({ model: 'meta/both' }, { key: acme })).text()
    assert.deepEqual([shared.calls.length, reserved.calls.length], [before[0], (before[1] ?? 0) + 1])
    await (await weir.chat({ model: 'meta/both' })).text()
    assert.deepEqual([shared.calls.length, reserved.calls.length], [(before[0] ?? 0) + 1, (before[1] ?? 0) + 1])
  })

  it('[C5] is shown to all callers with its hourly price, marked as indicative', async () => {
    for (const key of [weir.key, acme]) {
      for (const id of ['meta/reserved', 'meta/both']) {
        const { pricing } = await entry(id, key)
        assert.equal(pricing['dedicated_per_hour'], '12.50')
        assert.equal(pricing['dedicated_per_hour_indicative'], true)
      }
    }
    const { pricing } = await entry('meta/test-8b')
    assert.ok(!('dedicated_per_hour_indicative' in pricing))
    assert.deepEqual((await entry('meta/reserved')).modes, ['dedicated'])
    assert.deepEqual((await entry('meta/both')).modes, ['serverless', 'dedicated'])
  })

  it('[C5] charges no tokens, because it is paid by the hour', async () => {
    const response = await weir.admin('GET', '/admin/v1/usage?workspace=acme')
    const { data } = (await response.json()) as { data: { model: string; lane: string; amount_pico_aud: string }[] }
    const lanes = data.filter(({ model }) => model === 'meta/both' || model === 'meta/reserved')
    assert.ok(lanes.length >= 2)
    for (const { model, lane, amount_pico_aud: amount } of lanes) {
      assert.deepEqual([lane, amount], [`${model}@acme`, '0'])
    }
  })

  it('[C5] is set up by the operator: no public call creates it', async () => {
    for (const path of ['/models', '/models/meta/reserved', '/models/detail']) {
      const response = await weir.call(path, { method: 'POST', body: '{}' })
      assert.equal((await refusalOf(response)).code, 'method_not_allowed', path)
    }
  })
})

describe('a model without an engine', () => {
  for (const id of ['meta/without', 'meta/announced']) {
    it(`[Q9, X2] is 503 model_not_configured with Retry-After: ${id}`, async () => {
      const refusal = await refusalOf(await weir.chat({ model: id }))
      assert.deepEqual(
        [refusal.status, refusal.type, refusal.code, refusal.param, refusal.retryAfter],
        [503, 'server_error', 'model_not_configured', 'model', '10'],
      )
    })
  }

  it('[L2] is model_unavailable while no engine answers, and can be called again when one does', async (t) => {
    const engine = await scriptedEngine()
    const port = Number(new URL(engine.url).port)
    await engine.close()
    const { weir: alone } = await serve(t, [modelEntry([engine.url])])
    const callable = async (): Promise<number> => {
      const { data } = (await (await alone.call('/models')).json()) as { data: object[] }
      return data.length
    }
    await eventually('it is known to be down', async () => (await callable()) === 0)
    assert.equal((await refusalOf(await alone.chat({}))).code, 'model_unavailable')
    const back = await scriptedEngine({ port })
    t.after(() => back.close())
    await eventually('it is known to be back', async () => (await callable()) === 1)
    assert.equal((await alone.chat({})).status, 200)
  })
})

describe('the catalog while the service runs', () => {
  it('[C9] changes when the operator reloads it: models are added, changed and removed', async (t) => {
    const { weir: it, ids } = await serve(t, [modelEntry([shared.url])])
    it.writeConfig({ models: [modelEntry([shared.url], { context_length: 9000 }), other()] })
    assert.deepEqual(await ids(), ['meta/test-8b'], 'nothing changes before it is read')
    const response = await it.reload()
    assert.deepEqual(await response.json(), { reloaded: true, models: 2, unreached: [], needs_restart: [] })
    assert.deepEqual(await ids(), ['meta/test-8b', 'meta/other'])
    assert.equal((await it.chat({ model: 'meta/other' })).status, 200)
    const detail = await it.call('/models/test-8b')
    assert.equal(((await detail.json()) as Entry)['context_length'], 9000)
    it.writeConfig({ models: [other()] })
    await it.reload()
    assert.deepEqual(await ids(), ['meta/other'])
    assert.equal((await refusalOf(await it.chat({}))).code, 'model_not_found')
  })

  it('[C9] changes by itself when the file does, however it is written', async (t) => {
    const { weir: it, ids } = await serve(t, [modelEntry([shared.url])], {})
    it.writeConfig({ models: [modelEntry([shared.url]), other()] })
    await eventually('the new model is listed', async () => (await ids()).length === 2)
    it.writeConfig({ models: [other()] })
    await eventually('the old model is gone', async () => (await ids()).join() === 'meta/other')
  })

  it('[C9] can be a file of its own, which is watched in the same way', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-catalog-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'catalog.yaml')
    writeFileSync(file, stringify({ models: [modelEntry([shared.url])] }))
    const { ids } = await serve(t, [], { catalog: file, models: undefined })
    assert.deepEqual(await ids(), ['meta/test-8b'])
    writeFileSync(file, stringify({ models: [other()] }))
    await eventually('the new model is listed', async () => (await ids()).join() === 'meta/other')
  })

  it('[C9] is unchanged after a broken edit, and the error shows where the mistake is', async (t) => {
    const { weir: it, ids } = await serve(t, [modelEntry([shared.url])], {})
    const good = readFileSync(it.configFile, 'utf8')
    const line = good.split('\n').findIndex((text) => text.includes('context_length')) + 1
    writeFileSync(it.configFile, good.replace('context_length: 8192', 'context_length: lots'))
    const refusal = await refusalOf(await it.reload())
    assert.deepEqual([refusal.status, refusal.code], [400, 'invalid_value'])
    assert.ok(refusal.message.includes(`weir.yaml:${line}: models[0].context_length: must be an integer`))
    for (const text of ['models: [', 'models:\n  - id: none', 'models: 5', 'modles: []']) {
      writeFileSync(it.configFile, text)
      assert.equal((await it.reload()).status, 400, text)
      assert.deepEqual(await ids(), ['meta/test-8b'], text)
    }
    rmSync(it.configFile)
    assert.equal((await it.reload()).status, 400, 'no file')
    assert.deepEqual(await ids(), ['meta/test-8b'])
    writeFileSync(it.configFile, good)
    assert.equal((await it.reload()).status, 200)
    assert.deepEqual(await ids(), ['meta/test-8b'])
    assert.equal((await it.chat({})).status, 200)
  })

  it('[C9] is unchanged while the watched file is broken, until it is repaired', async (t) => {
    const { weir: it, ids } = await serve(t, [modelEntry([shared.url])], {})
    const good = readFileSync(it.configFile, 'utf8')
    writeFileSync(it.configFile, good.replace('meta/test-8b', 'no slug'))
    // The file is checked twice a second. The old catalog must be there every time.
    for (let look = 0; look < 8; look++) {
      assert.deepEqual(await ids(), ['meta/test-8b'])
      assert.equal((await it.chat({})).status, 200)
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
    writeFileSync(it.configFile, good.replace('meta/test-8b', 'meta/mended'))
    await eventually('the mended file is read', async () => (await ids()).join() === 'meta/mended')
  })

  it('[C9] does not lose all of its models to a truncated file, unless it is forced', async (t) => {
    const { weir: it, ids } = await serve(t, [modelEntry([shared.url]), other()], {})
    const whole = readFileSync(it.configFile, 'utf8')
    writeFileSync(it.configFile, whole.split('\n').slice(0, 5).join('\n'))
    const refusal = await refusalOf(await it.reload())
    assert.deepEqual([refusal.status, refusal.code], [400, 'invalid_value'])
    assert.match(refusal.message, /weir\.yaml: .*has no models.*weir reload --force/)
    // Neither the watcher, which has seen the file by now, nor SIGHUP takes it.
    it.service.reloadCatalog()
    await sleep(1500)
    assert.deepEqual(await ids(), ['meta/test-8b', 'meta/other'])
    assert.equal((await it.chat({})).status, 200)

    const forced = await it.admin('POST', '/admin/v1/catalog/reload?force=true')
    assert.deepEqual(await forced.json(), { reloaded: true, models: 0, unreached: [], needs_restart: [] })
    assert.deepEqual(await ids(), [])
    writeFileSync(it.configFile, whole)
    await eventually('the whole file is read', async () => (await ids()).length === 2)
  })

  const charged = { input_per_million: '0.20', output_per_million: '0.60', cached_input_per_million: '0.05' }
  const reservedFor = (perHour: object): object => ({ dedicated: [{ workspace: 'acme', ...perHour }] })
  for (const [what, before, after, lost] of [
    ['all prices', { pricing: charged }, { pricing: undefined }, 'input_per_million, output_per_million'],
    [
      'one price',
      { pricing: charged },
      { pricing: { ...charged, output_per_million: undefined } },
      'output_per_million',
    ],
    [
      'a price to nothing',
      { pricing: charged },
      { pricing: { ...charged, input_per_million: '0' } },
      'input_per_million',
    ],
    ['the price of an image', { pricing: { per_image: '0.04' } }, { pricing: {} }, 'per_image'],
    ['the price of an hour', reservedFor({ per_hour: '12.50' }), reservedFor({}), 'per_hour for acme'],
  ] as const) {
    it(`[C9] does not lose ${what}, unless it is forced`, async (t) => {
      const { weir: it, ids } = await serve(t, [modelEntry([shared.url], before)])
      it.writeConfig({ models: [modelEntry([shared.url], after), other()] })
      const refusal = await refusalOf(await it.reload())
      assert.deepEqual([refusal.status, refusal.code], [400, 'invalid_value'])
      assert.ok(refusal.message.includes(`meta/test-8b would lose ${lost}`), refusal.message)
      assert.deepEqual(await ids(), ['meta/test-8b'])
      const forced = await it.admin('POST', '/admin/v1/catalog/reload?force=true')
      assert.deepEqual(await forced.json(), { reloaded: true, models: 2, unreached: [], needs_restart: [] })
      assert.deepEqual(await ids(), ['meta/test-8b', 'meta/other'])
    })
  }

  it('[C9] is reloaded by weir reload, which reports mistakes, and forces it with --force', async (t) => {
    const { weir: it, ids } = await serve(t, [modelEntry([shared.url]), other()], {})
    const reload = (...flags: string[]) =>
      commandLine(['reload', '--config', it.configFile, '--data', it.dataDir, ...flags])
    const renamed = other('meta/renamed')
    it.writeConfig({ models: [renamed, modelEntry([shared.url])] })
    assert.deepEqual((await reload('--json')).json(), { reloaded: true, models: 2, unreached: [], needs_restart: [] })
    assert.deepEqual(await ids(), ['meta/renamed', 'meta/test-8b'])
    it.writeConfig({ models: [renamed, modelEntry([shared.url], { pricing: undefined })] })
    const refused = await reload()
    assert.deepEqual([refused.code, refused.stdout], [1, ''])
    assert.match(
      refused.stderr,
      /^weir: \S+weir\.yaml: meta\/test-8b would lose input_per_million, output_per_million\. .*\n$/,
    )
    const forced = await reload('--force')
    assert.deepEqual([forced.code, forced.stdout], [0, 'Reloaded: 2 models.\n'])
    await it.service.stop()
    const alone = await reload()
    assert.equal(alone.code, 2)
    assert.match(alone.stderr, /no service is running on /)
  })

  it('[C9] accepts new prices, and models added and removed with their prices, without force', async (t) => {
    const { weir: it, ids } = await serve(t, [modelEntry([shared.url], { pricing: charged })])
    // Without a price of their own, cached tokens cost as much as others.
    const dearer = { input_per_million: '0.30', output_per_million: '0.90' }
    it.writeConfig({ models: [modelEntry([shared.url], { pricing: dearer }), other()] })
    assert.equal((await it.reload()).status, 200)
    it.writeConfig({ models: [modelEntry([shared.url], { id: 'meta/free', aliases: [], pricing: undefined })] })
    assert.equal((await it.reload()).status, 200)
    assert.deepEqual(await ids(), ['meta/free'])
  })

  it('[C9] accepts a slowly written file only when it is complete', async (t) => {
    const { file, write, catalog } = await catalogFile(t, [modelEntry([shared.url])], { pollMs: 200, pollsMax: 100 })
    const models = [modelEntry([shared.url]), ...['a', 'b', 'c', 'd'].map((id) => other(`meta/${id}`))]
    // Every part of it is a valid file, with some of the models.
    const [head = '', ...parts] = stringify({ models }).split(/(?=^ {2}- id:)/m)
    assert.equal(parts.length, 5)
    write(`${head}${parts.shift()}`)
    const reload = catalog.reload()
    for (const part of parts) {
      // Shorter than a look, on the same timers: however slow the machine is, the next part comes before the look.
      await sleep(20)
      assert.equal(catalog.models().length, 1)
      appendFileSync(file, part)
    }
    await reload
    assert.equal(catalog.models().length, 5)
  })

  it('[C9] reports a file that is never complete', async (t) => {
    const { file, catalog } = await catalogFile(t, [modelEntry([shared.url])], { pollMs: 20, pollsMax: 5 })
    const writer = setInterval(() => appendFileSync(file, '#\n'), 2)
    await assert.rejects(catalog.reload(), /catalog\.yaml: is still being written/)
    clearInterval(writer)
    await catalog.reload()
  })

  it('[C9] drops no request when engines, limits, prices or other models change under load', async (t) => {
    const { weir: it } = await serve(t, [modelEntry([shared.url])])
    const traffic = { isOn: true }
    const answers: (number | string)[] = []
    const caller = async (stream: boolean): Promise<void> => {
      while (traffic.isOn) {
        const response = await it.chat({ stream })
        const text = await response.text()
        const isWhole = stream ? text.endsWith('data: [DONE]\n\n') && !text.includes('"error"') : text.endsWith('}')
        answers.push(response.status === 200 && isWhole ? 200 : text)
      }
    }
    const callers = [false, true, false, true].map(caller)
    for (let change = 0; change < 8; change++) {
      const engine = change % 2 ? shared : reserved
      const limits = { ...roomyLimits, max_concurrent_requests: 2 + (change % 3) }
      const pricing = { input_per_million: `0.${10 + change}`, output_per_million: '0.60' }
      const model = modelEntry([], { serverless: { engine: engineAt(engine), limits }, pricing })
      it.writeConfig({
        rate_limit: { requests_per_minute: 1_000_000 },
        models: change % 4 ? [model] : [other(), model],
      })
      assert.equal((await it.reload()).status, 200)
      const enough = answers.length + 12
      await eventually('traffic goes on', () => answers.length >= enough)
    }
    traffic.isOn = false
    await Promise.all(callers)
    assert.deepEqual([...new Set(answers)], [200])
    assert.ok(answers.length >= 96)
  })

  for (const [what, next] of [
    ['its engine is replaced', () => [modelEntry([], { serverless: one(reserved) })]],
    ['its model is gone', () => [other()]],
  ] as const) {
    it(`[C9] drops no request that waits in the queue when ${what}`, async (t) => {
      const { opened, open } = gate()
      const engine = await scriptedEngine()
      t.after(() => engine.close())
      engine.script = { hold: { afterTokens: 0, until: opened } }
      const { weir: it } = await serve(t, [modelEntry([], { serverless: one(engine) })])
      const running = it.chat({})
      await engine.arrived(1)
      const waiting = it.chat({})
      await eventually('the second waits', async () =>
        (await (await it.call('/queue/status')).text()).includes('"queue_depth":1'),
      )
      it.writeConfig({ models: next() })
      assert.equal((await it.reload()).status, 200)
      open()
      for (const response of await Promise.all([running, waiting])) {
        assert.equal(response.status, 200, await response.text())
      }
    })
  }

  it('[M6, C9] gives a changed price a new version, and does not change old rows', async (t) => {
    const { weir: it } = await serve(t, [modelEntry([shared.url])])
    const ask = async (): Promise<void> => assert.equal((await it.chat({})).status, 200)
    const reprice = async (input: string): Promise<void> => {
      const pricing = { input_per_million: input, output_per_million: '0.60', cached_input_per_million: '0.05' }
      it.writeConfig({ models: [modelEntry([shared.url], { pricing })] })
      assert.equal((await it.reload()).status, 200)
    }
    await ask()
    await reprice('0.20')
    await ask()
    const past = await it.ledger()
    await reprice('9.00')
    await ask()
    await reprice('0.20')
    await ask()
    const rows = await it.ledger()
    assert.deepEqual(rows.slice(0, 2), past)
    const [first, second, third, fourth] = rows.map((row) => row.priceVersion)
    assert.equal(first, second, 'the same price is the same version')
    assert.ok(first && third && fourth && first < third && third < fourth)
    // 10 tokens in, 3 out.
    assert.deepEqual(
      rows.map(({ amount }) => amount),
      [200_000n, 200_000n, 9_000_000n, 200_000n].map((input) => 10n * input + 3n * 600_000n),
    )
  })
})

function other(id = 'meta/other'): object {
  return modelEntry([shared.url], { id, aliases: [] })
}

/** A catalog without a service, in a file of its own. */
async function catalogFile(t: TestContext, models: object[], polling: FilePolling) {
  const folder = mkdtempSync(join(tmpdir(), 'weir-catalog-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'catalog.yaml')
  const write = (text: string): void => writeFileSync(file, text)
  write(stringify({ models }))
  const read = () => parseCatalog(readFileSync(file, 'utf8'), file, () => undefined)
  return { file, write, catalog: await openCatalog({ file, read }, async () => () => {}, polling) }
}

/** One request at a time. */
function one(engine: ScriptedEngine): object {
  return { engine: engineAt(engine), limits: { ...roomyLimits, max_concurrent_requests: 1 } }
}

async function listOf(it: TestWeir): Promise<Entry[]> {
  return ((await (await it.call('/models')).json()) as { data: Entry[] }).data
}

/** The shared service with these models, or with `config` a service of its own. */
async function serve(t: TestContext, models: object[], config?: object) {
  const common = { ...stageConfig([]), models }
  const it = await (config ? startWeir({ ...common, ...config }) : sharedWeir(common))
  if (config) t.after(() => it.stop())
  return { weir: it, ids: async (): Promise<string[]> => idsOf(await listOf(it)) }
}
