import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseCatalog } from '../../src/catalog/file.ts'
import type { Model } from '../../src/core/catalog.ts'

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
      dedicated: [],
    })
    const { engine: description, ...deployment } = serverless ?? assert.fail()
    assert.deepEqual(deployment, {
      lane: 'a/b',
      mode: 'serverless',
      workspace: undefined,
      limits: { tokenBudget: 200_000, maxConcurrentRequests: 32, maxQueueDepth: 256, maxWaitMs: 120_000 },
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
    const [embedding, vision, small] = catalog(
      entry({ id: 'a/e', categories: ['embedding'] }),
      entry({ id: 'a/v', categories: ['vision'] }),
      entry({ id: 'a/s', context_length: 100 }),
    )
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

  it('has its secret from the environment, and what is given instead of the defaults', () => {
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

  it('may go to the limits, and is refused beyond them with the place and what to do', () => {
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
