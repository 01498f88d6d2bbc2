import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { loadConfig, type Config } from '../../src/config.ts'
import { withoutPassword } from '../../src/shared/address-without-password.ts'
import { ConfigError } from '../../src/shared/checked-yaml.ts'
import { memoryToParse } from '../../src/shared/json/json-body.ts'

const folder = mkdtempSync(join(tmpdir(), 'weir-config-'))
after(() => rmSync(folder, { recursive: true }))
const file = join(folder, 'weir.yaml')

function load(text: string, environment: NodeJS.ProcessEnv = {}): Config {
  writeFileSync(file, text)
  const config = loadConfig({ config: file }, environment)
  config.catalog.read()
  return config
}

/** The error message without the path of the temporary folder. */
function mistakeIn(text: string, environment: NodeJS.ProcessEnv = {}): string {
  try {
    load(text, environment)
  } catch (error) {
    assert.ok(error instanceof ConfigError, `not a ConfigError: ${String(error)}`)
    return error.message.replaceAll(`${folder}/`, '')
  }
  return assert.fail('the mistake was not reported')
}

/** One field per line, so that line numbers are easy to count: `id` is on line 2. */
const model = `models:
  - id: meta/llama
    aliases: [llama]
    categories: [llm]
    context_length: 1000
    max_completion_tokens: 500
    serverless:
      engine: { kind: openai, urls: [http://127.0.0.1:9000/v1] }
`

describe('a mistake in weir.yaml is reported with the file, the line, the key and what is allowed', () => {
  const mistakes: readonly [string, string, string][] = [
    [
      'an unknown key',
      'server:\n  prot: 80\n',
      'weir.yaml:2: server.prot: is not a known key; allowed here: host, port',
    ],
    [
      'an unknown key at the top level',
      '\n\nsevrer: {}\n',
      'weir.yaml:3: sevrer: is not a known key; allowed here: server,',
    ],
    [
      'a number out of range',
      'server:\n  host: a\n  port: 70000',
      'weir.yaml:3: server.port: must be an integer from 0 to 65535, but is 70000',
    ],
    [
      'a word instead of a number',
      'server: { port: http }',
      'weir.yaml:1: server.port: must be an integer from 0 to 65535, but is "http"',
    ],
    [
      'an unknown tokenizer',
      `${model}    tokenizer: llama4\n`,
      'weir.yaml:9: models[0].tokenizer: must be one of cl100k_base, o200k_base, llama2, llama3, mistral,',
    ],
    [
      'a spool in which one workspace has no room for one upload',
      'audio:\n  max_upload_bytes: 2000000\n  max_spool_bytes: 3999999',
      'weir.yaml:3: audio.max_spool_bytes: must be at least 4000000, so that a workspace can send an upload of max_upload_bytes (2000000) with its half',
    ],
    [
      'too little memory for one body',
      'server:\n  max_body_bytes: 1048576\n  max_request_memory_bytes: 1000000',
      'weir.yaml:3: server.max_request_memory_bytes: must be at least 40390656, so that a workspace can send a body of max_body_bytes (1048576)',
    ],
    [
      'too little memory for a body of the usual size',
      'server: { max_request_memory_bytes: 50000000 }',
      'weir.yaml:1: server.max_request_memory_bytes: must be at least 199774208, so that a workspace can send a body of max_body_bytes (20971520)',
    ],
    [
      'an upload limit of 0 bytes',
      'audio: { max_upload_bytes: 0 }',
      'weir.yaml:1: audio.max_upload_bytes: must be an integer from 1024 to 1073741824, but is 0',
    ],
    ['a number instead of a string', 'data_dir: 5', 'weir.yaml:1: data_dir: must be a non-empty string, but is 5'],
    [
      'a value outside the allowed list',
      'log:\n\n  level: loud',
      'weir.yaml:3: log.level: must be one of debug, info, warn, error, silent, but is "loud"',
    ],
    [
      'a rate limit of 0',
      'rate_limit: { requests_per_minute: 0 }',
      'weir.yaml:1: rate_limit.requests_per_minute: must be an integer from 1 to 100000000, but is 0',
    ],
    [
      'a database that is not supported',
      'database: mysql://db',
      'weir.yaml:1: database: must be sqlite, or the address of a PostgreSQL, such as postgres://weir@host:5432/weir',
    ],
    [
      'an operator token that is too short',
      'operator_token: short',
      'weir.yaml:1: operator_token: must be at least 16 letters',
    ],
    [
      'an operator token with spaces',
      'operator_token: "sixteen letters and more"',
      'weir.yaml:1: operator_token: must be at least 16 letters',
    ],
    [
      'an object instead of a list',
      'models: { id: x }',
      'weir.yaml:1: models: must be an array of 0 to 10000 items, but is {"id":"x"}',
    ],
    ['invalid YAML', 'server: [\nport: 1', 'weir.yaml:2: '],
    ['a duplicate key', 'server:\n  port: 1\n  port: 2', 'weir.yaml:3: Map keys must be unique'],
    ['a tab', 'server:\n\tport: 1', 'weir.yaml:2: '],
    [
      'an alias without an anchor',
      'server:\n  host: *home',
      'weir.yaml:2: *home refers to an anchor that is not defined above it',
    ],
    ['plain text instead of fields', 'hello', 'weir.yaml:1: the file: must be an object, but is "hello"'],
    ['two documents', 'data_dir: a\n---\ndata_dir: b', 'weir.yaml:2: '],
    [
      'both models and a catalog',
      'catalog: weir.yaml\nmodels: []',
      'weir.yaml:1: catalog: give either models or catalog, not both',
    ],
    [
      'a catalog file that does not exist',
      'log: {}\ncatalog: gone.yaml',
      'weir.yaml:2: catalog: gone.yaml does not exist',
    ],
    [
      'a model without categories',
      'models:\n  - id: a/b\n    context_length: 1',
      'weir.yaml:2: models[0].categories: is required: an array of 1 to 6 items',
    ],
    [
      'a slug without a provider',
      model.replace('meta/llama', 'llama'),
      'weir.yaml:2: models[0].id: must be a slug <provider>/<model>',
    ],
    [
      'a category that does not exist',
      model.replace('[llm]', '[llm, video]'),
      'weir.yaml:4: models[0].categories[1]: must be one of llm, vision, embedding, reranker, image, audio, but is "video"',
    ],
    [
      'a context length of 0',
      model.replace('length: 1000', 'length: 0'),
      'weir.yaml:5: models[0].context_length: must be an integer from 1',
    ],
    [
      'more output than context',
      model.replace('tokens: 500', 'tokens: 1001'),
      'weir.yaml:6: models[0].max_completion_tokens: must be at most context_length (1000)',
    ],
    [
      'a default above the output limit',
      `${model}    default_max_tokens: 501`,
      'weir.yaml:9: models[0].default_max_tokens: must be at most max_completion_tokens (500)',
    ],
    [
      'an unknown engine',
      model.replace('openai', 'magic'),
      'weir.yaml:8: models[0].serverless.engine.kind: must be one of embedded, openai, vllm, sglang, llamacpp, llamacpp_python, ollama, tei, infinity, nim, litellm, cohere, jina, localai, sdcpp, speaches, whispercpp, but is "magic"',
    ],
    [
      'an engine without an address',
      model.replace('[http://127.0.0.1:9000/v1]', '[]'),
      'weir.yaml:8: models[0].serverless.engine.urls: must be an array of 1 to 256 items',
    ],
    [
      'an engine URL with an unsupported scheme',
      model.replace('http://127.0.0.1:9000/v1', 'ftp://x'),
      'weir.yaml:8: models[0].serverless.engine.urls[0]: must be an http://, https:// or unix:/ address, but is "ftp://x"',
    ],
    ['an engine URL that cannot be parsed', model.replace('127.0.0.1:9000', '[::'), 'weir.yaml:8: '],
    [
      'a token budget of 0',
      `${model}      limits: { token_budget: 0 }`,
      'weir.yaml:9: models[0].serverless.limits.token_budget: must be an integer from 1',
    ],
    [
      'a price that is not in quotes',
      `${model}    pricing: { input_per_million: 0.2 }`,
      'weir.yaml:9: models[0].pricing.input_per_million: must be a decimal in quotes, such as "0.20", but is 0.2',
    ],
    [
      'a price with too many decimals',
      `${model}    pricing: { input_per_million: "0.0000001" }`,
      'weir.yaml:9: models[0].pricing.input_per_million: must be an amount in AUD such as "0.20": at most 10000, and at most 6 decimals',
    ],
    [
      'a price that is too high',
      `${model}    pricing: { per_image: "10001" }`,
      'weir.yaml:9: models[0].pricing.per_image: must be an amount in AUD such as "0.20": at most 10000',
    ],
    [
      'prices for some image sizes but none for the others',
      `${model}    pricing: { image_prices: [{ size: 512x512, per_image: "0.01" }] }`,
      'weir.yaml:9: models[0].pricing.per_image: must be set when image_prices is set; it is the price of every other image',
    ],
    [
      'a price for an invalid image size',
      `${model}    pricing: { per_image: "1", image_prices: [{ size: 9x9, per_image: "1" }] }`,
      'weir.yaml:9: models[0].pricing.image_prices[0].size: must be a size such as 1024x1024, or auto',
    ],
    [
      'two prices for one image size',
      `${model}    pricing: { per_image: "1", image_prices: [{ size: 64x64, per_image: "1" }, { size: 64x64, per_image: "2" }] }`,
      'weir.yaml:9: models[0].pricing.image_prices: must be a list without duplicates, but has 64x64 twice',
    ],
    [
      'an image size whose price is too high',
      `${model}    pricing: { per_image: "1", image_prices: [{ size: 64x64, per_image: "10001" }] }`,
      'weir.yaml:9: models[0].pricing.image_prices: must be an amount in AUD such as "0.20": at most 10000',
    ],
    [
      'an unknown kind of price',
      `${model}    pricing: { per_word: "1" }`,
      'weir.yaml:9: models[0].pricing.per_word: is not a known key; allowed here: input_per_million, output_per_million',
    ],
    [
      'a duplicate slug',
      `${model}  - id: meta/llama\n    categories: [llm]\n    context_length: 1`,
      'weir.yaml:9: models[1].id: "meta/llama" is already the name of a model',
    ],
    [
      'a duplicate alias',
      `${model}  - id: meta/b\n    categories: [llm]\n    context_length: 1\n    aliases: [llama]`,
      'weir.yaml:12: models[1].aliases: "llama" is already the name of a model',
    ],
    [
      'a reranker without a schema',
      model.replace('[llm]', '[reranker]'),
      'weir.yaml:2: models[0].rerank_schema: is required for a reranker: one of documents, passages',
    ],
    [
      'two deployments for one workspace',
      `${model}    dedicated:\n      - workspace: acme\n      - workspace: acme`,
      'weir.yaml:11: models[0].dedicated[1].workspace: "acme" already has a deployment of this model',
    ],
    [
      'a health path that is not a path',
      model.replace(' }\n', ', health: { path: health } }\n'),
      'weir.yaml:8: models[0].serverless.engine.health.path: must be a path on the server that begins with "/", such as /health, but is "health"',
    ],
    [
      'probes that come too often',
      model.replace(' }\n', ', health: { interval_ms: 10 } }\n'),
      'weir.yaml:8: models[0].serverless.engine.health.interval_ms: must be',
    ],
    [
      'an unknown key for the health of an engine',
      model.replace(' }\n', ', health: { url: /health } }\n'),
      'weir.yaml:8: models[0].serverless.engine.health.url: is not a known key; allowed here: path, interval_ms',
    ],
    [
      'an API key variable that is not set',
      model.replace(' }\n', ', api_key_env: MISSING_KEY }\n'),
      'weir.yaml:8: models[0].serverless.engine.api_key_env: the environment variable MISSING_KEY is not set',
    ],
  ]
  for (const [name, text, expected] of mistakes) {
    it(name, () => {
      const message = mistakeIn(text)
      assert.ok(message.startsWith(expected), `${message}\n  is not\n${expected}`)
      assert.ok(!message.includes('\n'), 'one line')
    })
  }

  it('truncates a long value in the message', () => {
    assert.ok(mistakeIn(`data_dir: [${'x, '.repeat(5000)}]`).length < 300)
  })

  it('refuses nested aliases that would fill the memory', () => {
    const lines = ['x0: &x0 [1]', ...[1, 2, 3, 4, 5].map((it) => `x${it}: &x${it} [${`*x${it - 1},`.repeat(20)}]`)]
    assert.match(mistakeIn(lines.join('\n')), /^weir\.yaml: .*alias/i)
  })

  it('names the catalog file when the mistake is there', () => {
    writeFileSync(join(folder, 'catalog.yaml'), 'models:\n  - id: a/b\n    categories: []\n    context_length: 1')
    assert.match(mistakeIn('catalog: catalog.yaml'), /^catalog\.yaml:3: models\[0\]\.categories: must be/)
  })

  it('refuses a --config or WEIR_CONFIG that names a missing file', () => {
    assert.throws(() => loadConfig({ config: join(folder, 'none.yaml') }, {}), /none\.yaml does not exist/)
    assert.throws(() => loadConfig({}, { WEIR_CONFIG: join(folder, 'none.yaml') }), /none\.yaml does not exist/)
  })
})

describe('the environment', () => {
  it('overrides the file, and the command line overrides both', () => {
    writeFileSync(file, 'server: { host: 10.0.0.1, port: 1, admin_port: 2 }\ndata_dir: ./from-file\n')
    const fromFile = loadConfig({ config: file }, {})
    assert.deepEqual(
      [fromFile.host, fromFile.port, fromFile.adminPort, fromFile.dataDir],
      ['10.0.0.1', 1, 2, join(folder, 'from-file')],
    )
    const environment = {
      WEIR_CONFIG: file,
      WEIR_HOST: '10.0.0.2',
      WEIR_PORT: '3',
      WEIR_ADMIN_PORT: '4',
      WEIR_DATA_DIR: '/from-environment',
      WEIR_OPERATOR_TOKEN: 'a-token-of-the-environment',
    }
    const fromEnvironment = loadConfig({}, environment)
    assert.deepEqual(
      [fromEnvironment.host, fromEnvironment.port, fromEnvironment.adminPort, fromEnvironment.dataDir],
      ['10.0.0.2', 3, 4, '/from-environment'],
    )
    assert.equal(fromEnvironment.operatorToken, 'a-token-of-the-environment')
    assert.equal(fromEnvironment.adminHost, '127.0.0.1', 'the operator listener does not follow WEIR_HOST')
    const fromFlags = loadConfig({ port: '5', data: '/from-flags' }, environment)
    assert.deepEqual([fromFlags.port, fromFlags.dataDir, fromFlags.host], [5, '/from-flags', '10.0.0.2'])
  })

  it('is ignored when a variable is empty', () => {
    const config = load('', { WEIR_HOST: '', WEIR_PORT: '', WEIR_DATA_DIR: '', WEIR_OPERATOR_TOKEN: '' })
    assert.deepEqual([config.host, config.port, config.operatorToken], ['127.0.0.1', 8080, undefined])
    assert.equal(config.dataDir, join(folder, 'data'))
  })

  it('is validated like the file', () => {
    assert.match(mistakeIn('', { WEIR_PORT: 'http' }), /^WEIR_PORT: must be a port from 0 to 65535, but is "http"$/)
    assert.match(mistakeIn('', { WEIR_ADMIN_PORT: '65536' }), /^WEIR_ADMIN_PORT: must be a port/)
    assert.throws(() => loadConfig({ config: file, port: '-1' }, {}), /^Error: --port: must be a port/)
    const message = mistakeIn('', { WEIR_OPERATOR_TOKEN: 'secret' })
    assert.match(message, /^WEIR_OPERATOR_TOKEN: must be at least 16/)
    assert.ok(!message.includes('secret'))
  })

  it('chooses the database, and shows it without its password', () => {
    assert.equal(load('').databaseUrl, undefined)
    assert.equal(load('database: sqlite\n').databaseUrl, undefined)
    assert.equal(load('database: postgresql://db/weir\n').databaseUrl, 'postgresql://db/weir')
    const secret = 'postgres://weir:p@ss/word@db:5433/weir?password=pass'
    const config = load('database: sqlite\n', { WEIR_DATABASE_URL: secret.replace('@ss/', '%40ss%2F') })
    const shown = config.settings.find(({ key }) => key === 'database')
    assert.deepEqual(shown, { key: 'database', value: 'postgres://db:5433/weir', source: 'WEIR_DATABASE_URL' })
    assert.equal(withoutPassword(secret), 'postgres://db:5433/weir')
    const message = mistakeIn('', { WEIR_DATABASE_URL: 'mysql://secret@db' })
    assert.match(message, /^WEIR_DATABASE_URL: must be sqlite, or the address of a PostgreSQL/)
    assert.ok(!message.includes('secret'))
    assert.match(mistakeIn('database: postgres//db\n'), /database: must be sqlite, or the address/)
  })

  it('chooses the Redis that services share, and shows it without its password', () => {
    assert.equal(load('').redisUrl, undefined)
    assert.equal(load('coordination: memory\n').redisUrl, undefined)
    assert.equal(load('coordination: rediss://r:6380/2\n').redisUrl, 'rediss://r:6380/2')
    assert.equal(load('coordination: redis://r\n', { WEIR_REDIS_URL: 'memory' }).redisUrl, undefined)
    const { redisUrl, settings } = load('', { WEIR_REDIS_URL: 'redis://user:hunter2@r:6379' })
    assert.equal(redisUrl, 'redis://user:hunter2@r:6379')
    const shown = settings.find(({ key }) => key === 'coordination')
    assert.deepEqual([shown?.value, shown?.source], ['redis://r:6379', 'WEIR_REDIS_URL'])
  })

  it('is refused when it is not the address of a Redis, without repeating a password', () => {
    for (const wrong of ['http://r', 'redis://', 'redis://r:1/x', 'r:6379', 'redis://:hunter2@r /']) {
      const message = mistakeIn('', { WEIR_REDIS_URL: wrong })
      assert.match(message, /^WEIR_REDIS_URL: must be memory, or the address of a Redis, such as redis:/)
      assert.ok(!message.includes('hunter2'))
    }
  })

  it('provides the API key of an engine, under the name given in the file', () => {
    const config = load(model.replace(' }\n', ', api_key_env: ENGINE_KEY }\n'), { ENGINE_KEY: 'secret' })
    assert.equal(config.catalog.read()[0]?.serverless?.engine?.apiKey, 'secret')
  })
})

describe('a config', () => {
  it('has defaults for everything', () => {
    const empty = join(folder, 'empty')
    mkdirSync(empty)
    writeFileSync(join(empty, 'weir.yaml'), '# nothing yet\n')
    const config = loadConfig({ config: join(empty, 'weir.yaml') }, {})
    assert.deepEqual(
      [config.host, config.port, config.adminHost, config.adminPort, config.requestsPerMinute, config.maxBodyBytes],
      ['127.0.0.1', 8080, '127.0.0.1', 8081, 600, 20 * 1024 * 1024],
    )
    assert.deepEqual([config.dataDir, config.modelsDir], [join(empty, 'data'), join(empty, 'data', 'models')])
    assert.deepEqual(config.catalog.read(), [])
    assert.ok(Object.isFrozen(config))
  })

  it('has a seller who wants to be paid within two weeks, unless it says more', () => {
    const least = { name: 'Weir Pty Ltd', abn: '51824753556' }
    const seller = { ...least, address: '', paymentDays: 14, paymentDetails: '', publicUrl: undefined }
    assert.deepEqual(load(JSON.stringify({ seller: least })).seller, seller)
    const more = {
      address: '1 George St',
      payment_terms_days: 7,
      payment_details: 'BSB 1',
      public_url: 'https://weir.test/',
    }
    assert.deepEqual(load(JSON.stringify({ seller: { ...least, ...more } })).seller, {
      ...least,
      address: '1 George St',
      paymentDays: 7,
      paymentDetails: 'BSB 1',
      publicUrl: 'https://weir.test',
    })
  })

  it('gives requests a quarter of the memory by default, and enough for two bodies of any size', () => {
    const { maxRequestMemoryBytes: usual } = load('')
    assert.ok(usual <= totalmem() / 4 && usual >= 2 * memoryToParse(20 * 2 ** 20), `${usual} bytes`)
    const large = load('server: { max_body_bytes: 1073741824 }').maxRequestMemoryBytes
    assert.equal(large, 2 * memoryToParse(2 ** 30))
    assert.equal(load('server: { max_request_memory_bytes: 200000000 }').maxRequestMemoryBytes, 200_000_000)
  })

  it('[C6] reads a model with every documented field', () => {
    const [llama] = load(
      `
models:
  - id: meta/llama-3.1-8b-instruct
    aliases: [llama-8b]
    name: Llama 3.1 8B Instruct
    categories: [llm]
    context_length: 131072
    max_completion_tokens: 8192
    default_max_tokens: 1024
    supported_parameters: [temperature, top_p, stop, seed, tools, tool_choice, response_format]
    pricing: { input_per_million: "0.20", output_per_million: "0.60", cached_input_per_million: "0.05" }
    serverless:
      engine: { kind: openai, urls: [http://127.0.0.1:9000/v1], model: upstream-name, api_key_env: UPSTREAM_KEY, health: { path: /health, interval_ms: 2000 } }
      limits: { token_budget: 200000, max_concurrent_requests: 32, max_queue_depth: 256, max_wait_ms: 120000, max_requests_per_workspace: 8, batch: { reserve_concurrent: 2, reserve_tokens: 1000, max_share: 0.5, preempt: false, max_queue_depth: 9 }, flex: { max_wait_ms: 300000 } }
    dedicated:
      - workspace: acme
        engine: { kind: openai, urls: [http://127.0.0.1:9001/v1], model: upstream-name }
        limits: { token_budget: 400000, max_concurrent_requests: 64, max_queue_depth: 512, max_wait_ms: 300000 }
        per_hour: "12.50"
`,
      { UPSTREAM_KEY: 'k' },
    ).catalog.read()
    assert.equal(llama?.rates.inputPerToken, 200_000n)
    assert.deepEqual(llama?.serverless?.limits, {
      tokenBudget: 200_000,
      maxConcurrentRequests: 32,
      maxQueueDepth: 256,
      maxWaitMs: 120_000,
      maxRequestsPerWorkspace: 8,
      batch: { reserveConcurrent: 2, reserveTokens: 1000, maxShare: 0.5, preempt: false, maxQueueDepth: 9 },
      maxFlexWaitMs: 300_000,
    })
    assert.deepEqual(llama?.serverless?.engine?.health, { path: '/health', intervalMs: 2000 })
    assert.deepEqual(llama?.dedicated[0]?.engine?.health, { path: undefined, intervalMs: 5000 })
    assert.equal(llama?.dedicated[0]?.workspace, 'acme')
    assert.equal(llama?.dedicated[0]?.perHour, '12.50')
    assert.notEqual(llama?.dedicated[0]?.lane, llama?.serverless?.lane)
  })
})

describe('the models of a file', () => {
  it('are parsed once for each content of the file, however often they are read', () => {
    const config = load(model)
    const first = config.catalog.read()
    assert.equal(config.catalog.read(), first)
    writeFileSync(file, model.replace('meta/llama', 'meta/other'))
    assert.equal(config.catalog.read()[0]?.id, 'meta/other')
    writeFileSync(file, model.replace('context_length: 1000', 'context_length: none'))
    for (const attempt of [1, 2]) {
      assert.throws(
        () => config.catalog.read(),
        (error) => error instanceof ConfigError && error.mistakes.length === 1,
        `attempt ${attempt}`,
      )
    }
    writeFileSync(file, model)
    assert.deepEqual(config.catalog.read(), first)
  })

  it('in a separate file are too', () => {
    const own = join(folder, 'models.yaml')
    writeFileSync(own, model)
    const config = load('catalog: models.yaml\n')
    assert.equal(config.catalog.read(), config.catalog.read())
    writeFileSync(own, model.replace('meta/llama', 'meta/other'))
    assert.equal(config.catalog.read()[0]?.id, 'meta/other')
  })
})
