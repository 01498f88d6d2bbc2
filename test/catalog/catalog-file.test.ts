import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseCatalog } from '../../src/catalog/file.ts'
import { ConfigError } from '../../src/shared/checked-yaml.ts'
import type { Model } from '../../src/catalog/model.ts'

const secrets = (name: string): string | undefined => (name === 'KEY' ? 'secret' : undefined)

const catalog = (...entries: object[]): readonly Model[] =>
  parseCatalog(JSON.stringify({ models: entries }), 'weir.yaml', secrets)

const entry = (changes: object = {}): object => ({
  id: 'a/b',
  categories: ['llm'],
  context_length: 4096,
  ...changes,
})

const engine = (changes: object = {}): object => ({ kind: 'vllm', urls: ['http://127.0.0.1:8000'], ...changes })

/** The entry of a model with this engine. */
const withEngine = (changes: object, model: object = {}): object =>
  entry({ serverless: { engine: engine(changes) }, ...model })

describe('a model in the file of the catalog', () => {
  it('has defaults for everything that is not given', () => {
    const [model] = catalog(withEngine({}))
    assert.ok(model)
    const { serverless, rates: _rates, ...rest } = model
    assert.deepEqual(rest, {
      id: 'a/b',
      aliases: [],
      name: 'a/b',
      description: '',
      categories: ['llm'],
      contextLength: 4096,
      maxCompletionTokens: 4096,
      defaultMaxTokens: 1024,
      supportedParameters: [],
      tokenizer: undefined,
      instructType: undefined,
      rerankSchema: undefined,
      visibleTo: undefined,
      imagePrices: [],
      batchPrices: undefined,
      dedicated: [],
    })
    const { engine: description, ...deployment } = serverless ?? assert.fail()
    assert.deepEqual(deployment, {
      lane: 'a/b',
      mode: 'serverless',
      workspace: undefined,
      limits: {
        tokenBudget: 200_000,
        maxConcurrentRequests: 32,
        maxQueueDepth: 256,
        maxWaitMs: 120_000,
        maxRequestsPerWorkspace: undefined,
        batch: undefined,
        maxFlexWaitMs: undefined,
      },
      perHour: undefined,
    })
    assert.deepEqual(
      { ...description },
      {
        ...description,
        kind: 'vllm',
        urls: ['http://127.0.0.1:8000'],
        model: 'a/b',
        apiKey: undefined,
        scores: undefined,
        balance: 'least_busy',
        cacheTokens: undefined,
        sharePrefixes: false,
        firstByteTimeoutMs: 600_000,
        idleTimeoutMs: 300_000,
        health: { path: undefined, intervalMs: 5000 },
      },
    )
  })

  it('generates nothing by default unless it is an llm or reads images, and its default fits a small context', () => {
    const [embedding, vision, small, both] = catalog(
      entry({ id: 'a/e', categories: ['embedding'] }),
      entry({ id: 'a/v', categories: ['vision'] }),
      entry({ id: 'a/s', context_length: 100 }),
      entry({ id: 'a/both', categories: ['embedding', 'llm'] }),
    )
    assert.equal(both?.maxCompletionTokens, 4096)
    assert.deepEqual([embedding?.maxCompletionTokens, embedding?.defaultMaxTokens], [0, 0])
    assert.equal(vision?.maxCompletionTokens, 4096)
    assert.equal(small?.defaultMaxTokens, 100)
  })

  it('balances by prompts if it reads prompts and has several addresses', () => {
    const urls = ['http://127.0.0.1:1', 'http://127.0.0.1:2']
    const balance = (changes: object, model?: object): string | undefined =>
      catalog(withEngine(changes, model))[0]?.serverless?.engine?.balance
    assert.equal(balance({ urls }), 'prefix')
    assert.equal(balance({ urls, balance: 'least_busy' }), 'least_busy')
    assert.equal(balance({}), 'least_busy')
    assert.equal(balance({ urls }, { categories: ['embedding'] }), 'least_busy')
  })

  it('has its secret from the environment, and given values instead of the defaults', () => {
    const [model] = catalog(
      withEngine({
        model: 'other',
        api_key_env: 'KEY',
        share_prefixes: true,
        first_byte_timeout_ms: 1000,
        idle_timeout_ms: 2000,
        health: { path: '/well', interval_ms: 3000 },
      }),
    )
    const { engine: description } = model?.serverless ?? assert.fail()
    assert.deepEqual(
      [description?.model, description?.apiKey, description?.sharePrefixes, description?.health],
      ['other', 'secret', true, { path: '/well', intervalMs: 3000 }],
    )
    assert.deepEqual([description?.firstByteTimeoutMs, description?.idleTimeoutMs], [1000, 2000])
  })

  it('may go up to the limits, and is refused beyond them with the place and advice', () => {
    const whole = { max_completion_tokens: 4096, default_max_tokens: 4096 }
    assert.equal(catalog(entry(whole))[0]?.defaultMaxTokens, 4096)
    const reserved = (...dedicated: object[]): object => entry({ dedicated })
    const mistakes: readonly (readonly [readonly object[], RegExp])[] = [
      [[entry({ max_completion_tokens: 4097 })], /models\[0\]\.max_completion_tokens.*at most context_length \(4096\)/],
      [
        [entry({ max_completion_tokens: 10, default_max_tokens: 11 })],
        /models\[0\]\.default_max_tokens.*at most max_completion_tokens \(10\)/,
      ],
      [[entry({ categories: ['reranker'] })], /rerank_schema.*is required for a reranker: one of documents, passages/],
      [[entry({ tokenizer: 'mine' })], /tokenizer.*must be one of .*leave it out if unsure/],
      [[entry({ pricing: { input_per_million: '0.1234567' } })], /pricing\.input_per_million.*must be/],
      [[entry({ pricing: { input_per_million: '1,5' } })], /pricing\.input_per_million.*a decimal in quotes/],
      [[reserved({ workspace: 'acme', per_hour: '999999999' })], /dedicated\[0\]\.per_hour.*must be/],
      [
        [reserved({ workspace: 'acme' }, { workspace: 'acme' })],
        /dedicated\[1\]\.workspace.*"acme" already has a deployment/,
      ],
      [[entry(), entry()], /models\[1\]\.id.*"a\/b" is already the name of a model/],
      [[entry({ aliases: ['b'] }), entry({ id: 'a/c', aliases: ['b'] })], /models\[1\]\.aliases.*"b" is already/],
      [[withEngine({ api_key_env: 'MISSING' })], /engine\.api_key_env.*the environment variable MISSING is not set/],
      [[withEngine({ kind: 'vllm', file: '/m.gguf' })], /engine\.file.*only for kind embedded/],
      [[withEngine({ kind: 'embedded', urls: undefined, file: 'm.gguf' })], /engine\.file.*absolute path of a \.gguf/],
      [
        [withEngine({ kind: 'embedded', urls: undefined, file: '/m.gguf', model: 'm' })],
        /engine\.model.*not allowed beside file/,
      ],
      [[withEngine({ kind: 'embedded' })], /engine\.urls.*not allowed for kind embedded/],
      [[withEngine({ urls: undefined })], /engine\.urls.*is required: a non-empty array of URLs/],
      [
        [withEngine({ kind: 'embedded', urls: undefined, health: { path: '/x' } })],
        /engine\.health.*not allowed for kind embedded/,
      ],
      [
        [withEngine({ balance: 'prefix' }, { categories: ['embedding'] })],
        /engine\.balance.*must be least_busy: only models of the category llm or vision/,
      ],
      [[withEngine({ urls: ['http://127.0.0.1:8000', 'http://'] })], /engine\.urls\[1\]/],
    ]
    for (const [entries, message] of mistakes) {
      assert.throws(() => catalog(...entries), { message }, String(message))
    }
    assert.equal(catalog(withEngine({ urls: ['unix:/run/engine.sock'] })).length, 1)
    assert.equal(catalog(withEngine({ kind: 'embedded', urls: undefined })).length, 1)
  })
})

describe('the limits of fields in the file of the catalog', () => {
  const accepted = (model: object): boolean => {
    try {
      return catalog(model).length === 1
    } catch (error) {
      assert.match((error as Error).message, /weir\.yaml/)
      return false
    }
  }

  /** The smallest and the largest value are taken, and nothing beyond them. */
  function requireRange(name: string, modelWith: (value: number) => object, smallest: number, largest: number): void {
    const taken = [smallest - 1, smallest, largest, largest + 1].map((value) => accepted(modelWith(value)))
    assert.deepEqual(taken, [false, true, true, false], name)
  }

  it('are unchanged for numbers', () => {
    const wide = { context_length: 100_000_000 }
    const engineWith = (name: string) => (value: number) => withEngine({ [name]: value })
    const limitWith = (name: string) => (value: number) => entry({ serverless: { limits: { [name]: value } } })
    requireRange('context_length', (value) => entry({ context_length: value }), 1, 100_000_000)
    requireRange('max_tokens', (value) => entry({ ...wide, max_completion_tokens: value }), 1, 100_000_000)
    requireRange('default', (value) => entry({ ...wide, default_max_tokens: value }), 1, 100_000_000)
    requireRange('cache_tokens', engineWith('cache_tokens'), 1000, 1_000_000_000)
    requireRange('first byte', engineWith('first_byte_timeout_ms'), 1000, 7_200_000)
    requireRange('idle', engineWith('idle_timeout_ms'), 1000, 7_200_000)
    requireRange('health', (value) => withEngine({ health: { interval_ms: value } }), 1000, 3_600_000)
    requireRange('token_budget', limitWith('token_budget'), 1, 1_000_000_000_000)
    requireRange('concurrent', limitWith('max_concurrent_requests'), 1, 1_000_000)
    requireRange('depth', limitWith('max_queue_depth'), 0, 1_000_000)
    requireRange('wait', limitWith('max_wait_ms'), 1, 3_600_000)
    const batchWith = (name: string) => (value: number) =>
      entry({ serverless: { limits: { batch: { [name]: value } } } })
    // At most one less than the limits of the whole lane.
    requireRange('reserve of places', batchWith('reserve_concurrent'), 0, 31)
    requireRange('reserve of tokens', batchWith('reserve_tokens'), 0, 199_999)
    requireRange('share', batchWith('max_share'), 0, 1)
    requireRange('depth of batch work', batchWith('max_queue_depth'), 0, 1_000_000)
    const flexWith = (value: number) => entry({ serverless: { limits: { flex: { max_wait_ms: value } } } })
    requireRange('wait of flex requests', flexWith, 1, 3_600_000)
  })

  it('are unchanged for texts', () => {
    const textWith = (name: string) => (length: number) => entry({ [name]: 'x'.repeat(Math.max(0, length)) })
    const engineText = (name: string) => (length: number) => withEngine({ [name]: 'x'.repeat(Math.max(0, length)) })
    requireRange('name', textWith('name'), 1, 200)
    requireRange('instruct_type', textWith('instruct_type'), 1, 64)
    requireRange('alias', (length) => entry({ aliases: ['x'.repeat(Math.max(0, length))] }), 1, 128)
    requireRange('parameter', (length) => entry({ supported_parameters: ['x'.repeat(Math.max(0, length))] }), 1, 64)
    requireRange('model of the engine', engineText('model'), 1, 256)
    requireRange('workspace', (length) => entry({ visible_to: ['x'.repeat(Math.max(0, length))] }), 1, 64)
    requireRange('workspace', (length) => entry({ dedicated: [{ workspace: 'x'.repeat(Math.max(0, length)) }] }), 1, 64)
    requireRange(
      'path',
      (length) => withEngine({ health: { path: '/'.padEnd(length, 'x').slice(0, length) } }),
      1,
      1000,
    )
    assert.ok(accepted(textWith('description')(4000)) && !accepted(textWith('description')(4001)))
    const variable = (length: number) => entry({ serverless: { engine: engine({ api_key_env: 'x'.repeat(length) }) } })
    const given = (length: number) => parseCatalog(JSON.stringify({ models: [variable(length)] }), 'f', () => 'secret')
    assert.equal(given(128).length, 1)
    for (const length of [0, 129]) assert.throws(() => given(length), /api_key_env/)
    const ids: readonly (readonly [string, boolean])[] = [
      ['a/b', true],
      [`${'a'.repeat(64)}/${'B'.repeat(128)}`, true],
      [`${'a'.repeat(65)}/b`, false],
      [`a/${'b'.repeat(129)}`, false],
      ['A/b', false],
      ['a/', false],
      ['/b', false],
      ['a/b c', false],
    ]
    for (const [id, isTaken] of ids) assert.equal(accepted(entry({ id })), isTaken, id)
    assert.throws(() => catalog(entry({ tokenizer: '' })), /tokenizer/)
  })

  it('are unchanged for lists', () => {
    const names = (count: number): string[] => Array.from({ length: Math.max(0, count) }, (_, index) => `x${index}`)
    const addresses = (count: number) => names(count).map((name) => `http://${name}:80`)
    const sizes = (count: number) => names(count).map((_, index) => ({ size: `${100 + index}x100`, per_image: '1' }))
    requireRange('urls', (count) => withEngine({ urls: addresses(count) }), 1, 256)
    const most = (name: string, modelWith: (count: number) => object, count: number): void =>
      assert.deepEqual([accepted(modelWith(count)), accepted(modelWith(count + 1))], [true, false], name)
    most('aliases', (count) => entry({ aliases: names(count) }), 64)
    most('parameters', (count) => entry({ supported_parameters: names(count) }), 128)
    most(
      'sizes',
      (count) => entry({ categories: ['image'], pricing: { per_image: '1', image_prices: sizes(count) } }),
      100,
    )
    most('dedicated', (count) => entry({ dedicated: names(count).map((workspace) => ({ workspace })) }), 1000)
    assert.equal(accepted(entry({ categories: [] })), false)
    assert.equal(accepted(entry({ visible_to: [] })), false)
    assert.deepEqual(
      ['auto', '10x10', '9999x9999', '9x10', '10x10000', '0x10', 'x'].map((size) =>
        accepted(
          entry({ categories: ['image'], pricing: { per_image: '1', image_prices: [{ size, per_image: '1' }] } }),
        ),
      ),
      [true, true, true, false, false, false, false],
    )
  })

  it('refuse unknown fields', () => {
    const unknown = { unknown: 1 }
    const entries = [
      entry(unknown),
      entry({ pricing: unknown }),
      entry({ pricing: { image_prices: [{ size: 'auto', per_image: '1', ...unknown }] } }),
      entry({ serverless: unknown }),
      entry({ serverless: { limits: unknown } }),
      withEngine(unknown),
      withEngine({ health: unknown }),
      entry({ dedicated: [{ workspace: 'acme', ...unknown }] }),
    ]
    for (const model of entries) assert.throws(() => catalog(model), /unknown/)
    assert.throws(() => parseCatalog('{"models":[],"unknown":1}', 'f', secrets), /unknown/)
  })
})

describe('a mistake in the file of the catalog', () => {
  /** The keys that mistakes are reported at. */
  function keysIn(models: readonly object[], more: object = {}): readonly string[] {
    try {
      parseCatalog(JSON.stringify({ models, ...more }), 'weir.yaml', secrets)
    } catch (error) {
      assert.ok(error instanceof ConfigError)
      return error.mistakes.map((mistake) => /^weir\.yaml:1: (\S+): /.exec(mistake)?.[1] ?? mistake)
    }
    return []
  }

  it('is reported at the key that is wrong, in a serverless and in a dedicated place', () => {
    const run = { command: ['serve'], port: 8101 }
    const devices = { gpu: '2GiB' }
    const runOf = (changes: object, kind = 'vllm') => ({ kind, run: { ...run, ...changes } })
    const places: readonly (readonly [at: string, engine: object])[] = [
      ['urls', { kind: 'vllm' }],
      ['urls', { kind: 'embedded', urls: ['http://a'] }],
      ['urls', engine({ run })],
      ['urls[1]', engine({ urls: ['http://a', 'http://'] })],
      ['health', { kind: 'embedded', health: {} }],
      ['file', engine({ file: '/x.gguf' })],
      ['model', { kind: 'embedded', file: '/x.gguf', model: 'x' }],
      ['api_key_env', engine({ api_key_env: 'OTHER' })],
      ['run', runOf({}, 'embedded')],
      ['run.device', runOf({ device: 'other' })],
      ['run.memory', runOf({ memory: '1GiB' })],
      ['run.memory', runOf({ device: 'gpu', memory: '2049MiB' })],
      ['run.sleep', runOf({ device: 'gpu', sleep: {} }, 'sglang')],
      ['run.sleep.memory', runOf({ device: 'gpu', memory: '1GiB', sleep: { memory: '1025MiB' } })],
      ['run.sleep.memory', runOf({ device: 'gpu', sleep: { memory: '2049MiB' } })],
    ]
    for (const [at, description] of places) {
      const serverless = { engine: description }
      assert.deepEqual(keysIn([entry({ serverless })], { devices }), [`models[0].serverless.engine.${at}`], at)
      const dedicated = [{ workspace: 'acme' }, { workspace: 'other', engine: description }]
      assert.deepEqual(keysIn([entry({ dedicated })], { devices }), [`models[0].dedicated[1].engine.${at}`], at)
    }
    const exactly = runOf({ device: 'gpu', memory: '2GiB', sleep: { memory: '2048MiB' } })
    assert.deepEqual(keysIn([entry({ serverless: { engine: exactly } })], { devices }), [])
    for (const [at, batch] of [
      ['reserve_concurrent', { reserve_concurrent: 32 }],
      ['reserve_tokens', { reserve_tokens: 200_000 }],
    ] as const) {
      const limits = { batch }
      assert.deepEqual(keysIn([entry({ serverless: { limits } })]), [`models[0].serverless.limits.batch.${at}`])
      const dedicated = [{ workspace: 'acme', limits }]
      assert.deepEqual(keysIn([entry({ dedicated })]), [`models[0].dedicated[0].limits.batch.${at}`])
    }
  })

  it('is reported at the key of the model, or of another one that it refers to', () => {
    const base = withEngine({})
    const adapter = (changes: object) => entry({ id: 'a/lora', adapter_of: 'a/b', adapter_source: '/lora', ...changes })
    const ported = (port: number) => withEngine({ urls: undefined, run: { command: ['serve'], port } })
    for (const [keys, ...models] of [
      [['models[1].id'], base, base],
      [['models[1].aliases'], base, entry({ id: 'a/c', aliases: ['a/b'] })],
      [['models[0].aliases'], entry({ aliases: ['x', 'x'] })],
      [['models[0].max_completion_tokens'], entry({ max_completion_tokens: 4097 })],
      [['models[0].default_max_tokens'], entry({ max_completion_tokens: 5, default_max_tokens: 6 })],
      [['models[0].rerank_schema'], entry({ categories: ['reranker'] })],
      [['models[0].tokenizer'], entry({ tokenizer: 'none' })],
      [['models[0].pricing.per_image'], entry({ pricing: { image_prices: [{ size: 'auto', per_image: '1' }] } })],
      [['models[0].dedicated[1].workspace'], entry({ dedicated: [{ workspace: 'a' }, { workspace: 'a' }] })],
      [['models[0].dedicated[0].per_hour'], entry({ dedicated: [{ workspace: 'a', per_hour: '10001' }] })],
      [['models[0].serverless.engine.balance'], withEngine({ balance: 'prefix' }, { categories: ['audio'] })],
      [['models[1].serverless.engine.run.port'], ported(8101), { ...ported(8101), id: 'a/c' }],
      [['models[0].adapter_of'], entry({ adapter_source: '/lora' })],
      [['models[1].adapter_source'], base, adapter({ adapter_source: undefined })],
      [['models[1].serverless'], base, adapter({ serverless: {} })],
      [['models[1].dedicated'], base, adapter({ dedicated: [] })],
      [['models[1].adapter_of'], base, adapter({ adapter_of: 'a/none' })],
      [['models[2].adapter_of'], base, adapter({}), adapter({ id: 'a/second', adapter_of: 'a/lora' })],
      [['models[1].adapter_of'], withEngine({ kind: 'ollama' }), adapter({})],
      [['models[1].categories'], base, adapter({ categories: ['embedding'] })],
      [['models[1].context_length'], base, adapter({ context_length: 4097 })],
    ] as const) {
      assert.deepEqual(keysIn(models), keys, keys.join())
    }
  })
})
