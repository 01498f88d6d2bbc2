import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { openPriceBook, type PriceBook } from '../../src/billing/prices/price-book.ts'
import type { Catalog } from '../../src/catalog/catalog.ts'
import { parseCatalog } from '../../src/catalog/file.ts'
import type { Deployment } from '../../src/catalog/model.ts'
import { catalogRoutes } from '../../src/catalog/routes/catalog.ts'
import { publicModelsRoute } from '../../src/catalog/routes/console-models.ts'
import { modelRoutes, type ModelsParts } from '../../src/catalog/routes/models.ts'
import { memoryChanges } from '../../src/cluster/changes/memory.ts'
import type { Engine } from '../../src/engines/engine.ts'
import { ConfigError } from '../../src/shared/checked-yaml.ts'
import { rulesOf } from '../../src/workspaces/keys/key-limits.ts'
import type { KeyLimits, Workspace } from '../../src/workspaces/workspace.ts'
import { testBooks, type TestBooks } from '../support/books.ts'
import { catalogOf } from '../support/catalog.ts'
import { noLimits } from '../support/key-limits.ts'
import { ask } from '../support/route-answer.ts'

const NOW = Date.UTC(2026, 10, 2)
const clock = { now: () => NOW + 999, monotonic: () => 0 }
const serverless = { engine: { kind: 'vllm', urls: ['http://127.0.0.1:1'] } }
const entry = (id: string, changes: object = {}) => ({
  id,
  categories: ['llm'],
  context_length: 4096,
  serverless,
  ...changes,
})

const entries = [
  entry('meta/a', {
    name: 'Model A',
    description: 'Chats.',
    aliases: ['a'],
    tokenizer: 'llama3',
    instruct_type: 'chatml',
    max_completion_tokens: 2000,
    default_max_tokens: 300,
    supported_parameters: ['temperature', 'top_k'],
    pricing: { input_per_million: '0.10', output_per_million: '0.20', cached_input_per_million: '0.01', batch: '0.5' },
    serverless: {
      ...serverless,
      limits: { token_budget: 1, max_concurrent_requests: 2, max_queue_depth: 3, max_wait_ms: 4 },
    },
    dedicated: [
      { workspace: 'other', per_hour: '3.50', engine: serverless.engine },
      { workspace: 'third', per_hour: '9', engine: serverless.engine },
    ],
  }),
  entry('meta/sees', { categories: ['vision'], pricing: { input_per_million: '1' } }),
  entry('sd/paints', {
    categories: ['image'],
    pricing: {
      per_image: '0.04',
      image_prices: [
        { size: '512x512', per_image: '0.02' },
        { size: 'auto', quality: 'hd', per_image: '0.06' },
      ],
    },
  }),
  entry('oa/transcribes', { categories: ['audio'], pricing: { per_audio_minute: '0.006' } }),
  entry('em/beds', { categories: ['embedding'], supported_parameters: ['dimensions'] }),
  entry('re/ranks', { categories: ['reranker'], rerank_schema: 'passages' }),
  entry('meta/reserved', {
    serverless: undefined,
    dedicated: [{ workspace: 'other', engine: serverless.engine }],
  }),
  entry('meta/hidden', { visible_to: ['other'] }),
  entry('meta/down'),
]

let books: TestBooks
let catalog: Catalog
let prices: PriceBook
let acme: Workspace
let parts: ModelsParts

const usable = { usable: () => true } as Engine
const starting = { usable: () => true, start: () => ({ state: 'starting', readyInMs: 12_000 }) } as unknown as Engine
const down = { usable: () => false } as Engine
const engineOf = ({ lane }: Deployment): Engine =>
  lane === 'meta/down' ? down : lane === 'em/beds' ? starting : usable

before(async () => {
  books = await testBooks(NOW)
  acme = await books.workspace('acme')
  catalog = await catalogOf(...entries)
  prices = await openPriceBook(books.store, clock, memoryChanges())
  await prices.syncListPrices(catalog.models())
  parts = { catalog, prices, engineOf }
})
after(() => books.close())

type Entry = Readonly<Record<string, unknown>>
async function list(query: string, limits: Partial<KeyLimits> = {}): Promise<readonly Entry[]> {
  const routes = modelRoutes(parts, new Set(['temperature', 'tools']))
  const caller = { workspace: acme, keyId: 'k', rules: rulesOf({ id: 'k', ...noLimits, ...limits }) }
  const { body } = await ask(routes, `GET /api/v1/models${query}`, { caller })
  assert.equal((body as { object: string }).object, 'list')
  return (body as { data: readonly Entry[] }).data
}
const idsOf = (models: readonly Entry[]) => models.map(({ id }) => id)

describe('the list of models', () => {
  it('has everything that a caller can know of a model', async () => {
    const { body } = await ask(modelRoutes(parts, new Set()), 'GET /api/v1/models/a', {
      caller: { workspace: acme, keyId: 'k' },
    })
    const batch = { input: '0.05', output: '0.10', cached_input: '0.005' }
    const one = {
      id: 'meta/a',
      object: 'model',
      created: Math.floor(clock.now() / 1000),
      owned_by: 'meta',
      name: 'Model A',
      context_length: 4096,
      max_completion_tokens: 2000,
      default_max_tokens: 300,
      architecture: {
        modality: 'text->text',
        input_modalities: ['text'],
        output_modalities: ['text'],
        tokenizer: 'llama3',
        instruct_type: 'chatml',
      },
      pricing: {
        currency: 'AUD',
        tax: 'excl_gst',
        prompt: '0.0000001',
        completion: '0.0000002',
        input_cache_read: '0.00000001',
        per_million_tokens: { input: '0.10', output: '0.20', cached_input: '0.01' },
        per_image: null,
        image_prices: [],
        per_audio_minute: null,
        batch: { per_million_tokens: batch },
        dedicated_per_hour: '3.50',
        dedicated_per_hour_indicative: true,
      },
      model_categories: ['llm'],
      supported_parameters: ['temperature', 'top_k'],
      modes: ['serverless', 'dedicated'],
      endpoints: ['/chat/completions'],
      available: true,
    }
    assert.deepEqual((await list(''))[0], one)
    const limits = { token_budget: 1, max_concurrent_requests: 2, max_queue_depth: 3, max_wait_ms: 4 }
    assert.deepEqual(body, { ...one, description: 'Chats.', aliases: ['a'], queue_limits: limits })
  })

  it('has prices by image and by minute, and null for what is not sold', async () => {
    const models = await list('')
    const pricing = (id: string) => models.find((it) => it['id'] === id)?.['pricing'] as Entry
    const { per_image, image_prices, batch, input_cache_read } = pricing('sd/paints')
    assert.deepEqual(
      [per_image, image_prices, batch, input_cache_read],
      [
        '0.04',
        [
          { size: '512x512', quality: null, per_image: '0.02' },
          { size: 'auto', quality: 'hd', per_image: '0.06' },
        ],
        null,
        null,
      ],
    )
    const { per_audio_minute, dedicated_per_hour, per_million_tokens, ...rest } = pricing('oa/transcribes')
    assert.deepEqual(
      [per_audio_minute, dedicated_per_hour, per_million_tokens, 'dedicated_per_hour_indicative' in rest],
      ['0.006', null, { input: '0.00', output: '0.00', cached_input: null }, false],
    )
  })

  it('says what each category takes and returns', async () => {
    const models = await list('')
    const shown = models.map(({ id, architecture }) => {
      const { modality, input_modalities, output_modalities, tokenizer, instruct_type } = architecture as Entry
      assert.equal(modality, `${(input_modalities as []).join('+')}->${(output_modalities as []).join('+')}`)
      return [id, modality, tokenizer ?? instruct_type]
    })
    assert.deepEqual(shown, [
      ['meta/a', 'text->text', 'llama3'],
      ['meta/sees', 'text+image->text', null],
      ['sd/paints', 'text->image', null],
      ['oa/transcribes', 'audio->text', null],
      ['em/beds', 'text->embedding', null],
      ['re/ranks', 'text->score', null],
    ])
  })

  it('has what can be called now, or the whole catalog with the reasons', async () => {
    const callable = ['meta/a', 'meta/sees', 'sd/paints', 'oa/transcribes', 'em/beds', 're/ranks']
    assert.deepEqual(idsOf(await list('')), callable)
    assert.deepEqual(idsOf(await list('?scope=callable')), callable)
    const all = await list('?scope=catalog')
    assert.deepEqual(idsOf(all), [...callable, 'meta/reserved', 'meta/down'])
    assert.deepEqual(
      all.slice(-2).map((it) => [it['available'], it['unavailable_reason'], it['unavailable_message'], it['engine']]),
      [
        [
          false,
          'model_access_denied',
          'meta/reserved runs only on reserved capacity, and this workspace has none.',
          undefined,
        ],
        [false, 'model_unavailable', 'Every engine of meta/down is down. Try again later.', undefined],
      ],
    )
    assert.deepEqual(all[4]?.['engine'], { state: 'starting', ready_in_ms: 12_000 })
  })

  it('is filtered by category, mode and parameters', async () => {
    assert.deepEqual(idsOf(await list('?category=audio')), ['oa/transcribes'])
    assert.deepEqual(idsOf(await list('?mode=dedicated')), ['meta/a'])
    assert.deepEqual(idsOf(await list('?supported_parameters=temperature,top_k')), ['meta/a'])
    assert.deepEqual(idsOf(await list('?supported_parameters=temperature,dimensions')), [])
    assert.deepEqual(idsOf(await list('?supported_parameters=tools')), [], 'an endpoint knows it')
    assert.equal((await list('?supported_parameters=,')).length, 6)
    for (const names of ['tempreature', 'temperature,tempreature'])
      await assert.rejects(list(`?supported_parameters=${names}`), {
        code: 'invalid_value',
        param: 'supported_parameters',
      })
  })

  it('has only what the key may call', async () => {
    assert.deepEqual(idsOf(await list('', { allowedModels: ['a', 'oa/transcribes'] })), ['meta/a', 'oa/transcribes'])
    assert.deepEqual(idsOf(await list('', { allowedEndpoints: ['/embeddings', '/completions'] })), [
      'meta/a',
      'em/beds',
    ])
  })
})

describe('one model', () => {
  const shown = (path: string, workspace = acme, limits: Partial<KeyLimits> = {}) =>
    ask(modelRoutes(parts, new Set()), `GET /api/v1/models${path}`, {
      caller: { workspace, keyId: 'k', rules: rulesOf({ id: 'k', ...noLimits, ...limits }) },
    })

  it('is found by its slug or alias, in the query or the path', async () => {
    for (const path of ['/detail?slug=meta/a', '/detail?slug=a', '/meta/a', '/meta%2Fa'])
      assert.equal(((await shown(path)).body as Entry)['id'], 'meta/a')
    const { queue_limits: limits } = (await shown('/meta/reserved')).body as Entry
    assert.equal(limits, null)
  })

  it('is not found if it is hidden, or not allowed', async () => {
    const missing = { code: 'model_not_found', param: 'slug' }
    await assert.rejects(shown('/meta/hidden'), missing)
    await assert.rejects(shown('/meta/a', acme, { allowedModels: ['oa/transcribes'] }), missing)
    await assert.rejects(shown('/none'), { ...missing, message: "The model 'none' does not exist." })
    await assert.rejects(shown('/detail?slug='), { code: 'missing_required_parameter', param: 'slug' })
    assert.equal(((await shown('/meta/hidden', { ...acme, name: 'other' })).body as Entry)['id'], 'meta/hidden')
  })

  it('has the workspace’s own prices, also for images and batches', async () => {
    const own = await books.workspace('own')
    const model = catalog.find('meta/a', 'own')!
    await prices.setWorkspacePrice(model, own.id, {
      input_per_million: '0.08',
      output_per_million: '0.16',
      batch: '0.25',
    })
    const { pricing } = (await shown('/meta/a', own)).body as { pricing: Entry }
    assert.deepEqual(
      [pricing['prompt'], pricing['per_million_tokens'], pricing['batch']],
      [
        '0.00000008',
        { input: '0.08', output: '0.16', cached_input: '0.01' },
        { per_million_tokens: { input: '0.02', output: '0.04', cached_input: '0.0025' } },
      ],
    )
    const images = [{ size: '512x512', per_image: '0.01' }]
    await prices.setWorkspacePrice(catalog.find('sd/paints', 'own')!, own.id, { image_prices: images })
    const painter = (await shown('/sd/paints', own)).body as { pricing: Entry }
    assert.deepEqual(painter.pricing['image_prices'], [{ size: '512x512', quality: null, per_image: '0.01' }])
  })

  it('has the price of the workspace’s own reservation', async () => {
    const own = [
      { workspace: 'other', engine: serverless.engine, per_hour: '3' },
      { workspace: 'acme', engine: serverless.engine, per_hour: '2' },
    ]
    const catalog = await catalogOf(entry('meta/a', { dedicated: own }))
    await prices.syncListPrices(catalog.models())
    const perHour = async (workspace: Workspace) => {
      const routes = modelRoutes({ ...parts, catalog }, new Set())
      const { body } = await ask(routes, 'GET /api/v1/models/meta/a', { caller: { workspace, keyId: 'k' } })
      return ((body as Entry)['pricing'] as Entry)['dedicated_per_hour']
    }
    assert.deepEqual([await perHour(acme), await perHour({ ...acme, name: 'new' })], ['2', '3'])
  })
})

describe('the models for visitors', () => {
  it('are what every workspace sees, if the operator allows it', async () => {
    const shown = publicModelsRoute({ ...parts, consoleModels: 'public' })
    const { data } = (await ask([shown], 'GET /console/api/public-models')).body as { data: readonly Entry[] }
    assert.deepEqual([data.length, idsOf(data).includes('meta/hidden'), shown.isCounted], [8, false, true])
    const hidden = publicModelsRoute({ ...parts, consoleModels: 'members' })
    await assert.rejects(ask([hidden], 'GET /console/api/public-models'), { code: 'missing_api_key' })
  })
})

describe('the catalog, for the operator', () => {
  const read = (...models: object[]) => parseCatalog(JSON.stringify({ models }), 'weir.yaml', () => 'secret')
  const routes = (source: () => ReturnType<typeof read>, file: string | undefined = '/srv/weir.yaml') =>
    catalogRoutes({
      catalog,
      catalogSource: { file, read: source },
      needRestart: () => [{ key: 'server.port', value: 80, needs: 'restart' }],
    })

  it('shows a model with its list prices', async () => {
    const none = () => read()
    assert.deepEqual((await ask(routes(none), 'GET /admin/v1/models/sd/paints')).body, {
      id: 'sd/paints',
      name: 'sd/paints',
      description: '',
      aliases: [],
      categories: ['image'],
      context_length: 4096,
      max_completion_tokens: 0,
      pricing: {
        input_per_million: '0.00',
        output_per_million: '0.00',
        per_image: '0.04',
        image_prices: [
          { size: '512x512', per_image: '0.02' },
          { size: 'auto', quality: 'hd', per_image: '0.06' },
        ],
      },
    })
    await assert.rejects(ask(routes(none), 'GET /admin/v1/models/none'), { code: 'not_found', param: 'model' })
  })

  it('shows what a reload would change or lose, and applies nothing', async () => {
    const next = read(...entries.slice(1), entry('meta/new'))
    const preview = async (source: () => ReturnType<typeof read>, file?: string) => {
      const { body, recorded } = await ask(routes(source, file), 'POST /admin/v1/catalog/preview')
      assert.deepEqual(recorded, [])
      return body as Entry & { changes: readonly Entry[] }
    }
    const { changes, ...rest } = await preview(() => next)
    const needs_restart = [{ key: 'server.port', value: '80' }]
    assert.deepEqual(rest, { file: '/srv/weir.yaml', mistakes: [], needs_restart, losses: [] })
    assert.deepEqual(
      changes.map(({ model, change }) => [model, change]),
      [
        ['meta/new', 'added'],
        ['meta/a', 'removed'],
      ],
    )
    const empty = await preview(() => read())
    assert.deepEqual(empty['losses'], ['it has no models'])
    const broken = await preview(() => {
      throw new ConfigError('weir.yaml:1: wrong')
    })
    assert.deepEqual(broken, {
      file: '/srv/weir.yaml',
      mistakes: ['weir.yaml:1: wrong'],
      needs_restart: [],
      losses: [],
      changes: [],
    })
    const failing = preview(() => {
      throw new Error('the disk')
    })
    await assert.rejects(failing, /the disk/)
    assert.equal(catalog.find('meta/a', 'acme')?.id, 'meta/a')
  })
})
