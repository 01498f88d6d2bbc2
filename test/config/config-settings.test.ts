import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { getHeapStatistics } from 'node:v8'
import { loadConfig } from '../../src/config.ts'
import { pendingSettings } from '../../src/shared/settings.ts'
import { ConfigError } from '../../src/shared/checked-yaml.ts'

const folder = mkdtempSync(join(tmpdir(), 'weir-settings-'))
after(() => rmSync(folder, { recursive: true }))
const file = join(folder, 'weir.yaml')
writeFileSync(join(folder, 'font.ttf'), '')

const seller = { name: 'Weir', abn: '51824753556' }
const GIB = 2 ** 30

function accepted(content: object): boolean {
  writeFileSync(file, JSON.stringify(content))
  try {
    loadConfig({ config: file }, {})
    return true
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error))
    return false
  }
}

/** The smallest and the largest value are taken, and nothing beyond them. */
function requireRange(name: string, contentWith: (value: number) => object, smallest: number, largest: number): void {
  const taken = [smallest - 1, smallest, largest, largest + 1].map((value) => accepted(contentWith(value)))
  assert.deepEqual(taken, [false, true, true, false], name)
}

const most = (name: string, contentWith: (value: number) => object, largest: number): void =>
  assert.deepEqual([accepted(contentWith(largest)), accepted(contentWith(largest + 1))], [true, false], name)

describe('the limits of weir.yaml', () => {
  const server = (name: string) => (value: number) => ({ server: { [name]: value } })
  const text = (length: number): string => 'x'.repeat(Math.max(0, length))

  it('are unchanged for numbers', () => {
    requireRange('port', server('port'), 0, 65_535)
    requireRange('admin_port', server('admin_port'), 0, 65_535)
    requireRange('drain_ms', server('drain_ms'), 0, 3_600_000)
    const memory = { max_request_memory_bytes: Number.MAX_SAFE_INTEGER }
    requireRange('body', (value) => ({ server: { max_body_bytes: value, ...memory } }), 1024, GIB)
    requireRange('journal', (value) => ({ ledger: { max_journal_bytes: value } }), 2 ** 20, 1024 * GIB)
    requireRange('terms', (value) => ({ seller: { ...seller, payment_terms_days: value } }), 0, 365)
    requireRange('link_days', (value) => ({ invoice: { link_days: value } }), 1, 3650)
    for (const name of ['requests_per_minute', 'unauthenticated_per_minute'] as const) {
      requireRange(name, (value) => ({ rate_limit: { [name]: value } }), 1, 100_000_000)
    }
    requireRange('image bytes', (value) => ({ images: { max_bytes: value } }), 1024, GIB)
    requireRange('image side', (value) => ({ images: { max_side_px: value } }), 1, 65_535)
    const local = { kind: 'local', public_url: 'http://weir' }
    requireRange('links', (value) => ({ files: { ...local, link_ttl_seconds: value } }), 1, 31_536_000)
    assert.ok(!accepted({ files: { ...local, max_bytes: 2 ** 20 - 1 } }))
    assert.ok(accepted({ files: { ...local, max_bytes: 2 ** 20 } }))
    requireRange('upload', (value) => ({ audio: { max_upload_bytes: value } }), 1024, GIB)
    most('spool', (value) => ({ audio: { max_upload_bytes: 1024, max_spool_bytes: value } }), 1024 * GIB)
  })

  it('are unchanged for texts and lists', () => {
    for (const name of ['host', 'admin_host']) {
      assert.deepEqual([accepted({ server: { [name]: '' } }), accepted({ server: { [name]: 'x' } })], [false, true])
    }
    assert.ok(!accepted({ data_dir: '' }) && !accepted({ catalog: '' }))
    assert.ok(!accepted({ seller: { ...seller, name: '' } }))
    most('details', (length) => ({ seller: { ...seller, payment_details: text(length) } }), 1000)
    const fonts = (count: number) => ({ invoice: { fonts: Array.from({ length: count }, () => 'font.ttf') } })
    most('fonts', fonts, 20)
    assert.ok(!accepted({ invoice: { fonts: [''] } }))
    const hosts = (count: number) => ({ images: { allowed_hosts: Array.from({ length: count }, (_, it) => `h${it}`) } })
    most('hosts', hosts, 1000)
    assert.ok(!accepted({ images: { allowed_hosts: [''] } }))
    requireRange('line', (length) => ({ prompts: { changing_lines: [text(length)] } }), 4, 200)
    most('lines', (count) => ({ prompts: { changing_lines: Array.from({ length: count }, () => 'Date: ') } }), 20)
    const s3 = {
      kind: 's3',
      endpoint: 'http://s3',
      bucket: 'abc',
      region: 'x',
      access_key_env: 'A',
      secret_key_env: 'B',
    }
    requireRange('bucket', (length) => ({ files: { ...s3, bucket: text(length) } }), 3, 63)
    requireRange('region', (length) => ({ files: { ...s3, region: text(length) } }), 1, 64)
    requireRange('prefix', (length) => ({ files: { ...s3, prefix: text(length) } }), 1, 200)
    requireRange('access key', (length) => ({ files: { ...s3, access_key_env: text(length) } }), 1, 128)
    requireRange('secret key', (length) => ({ files: { ...s3, secret_key_env: text(length) } }), 1, 128)
    requireRange('links', (value) => ({ files: { ...s3, link_ttl_seconds: value } }), 1, 604_800)
    const tokens = [15, 16].map((length) => accepted({ operator_token: text(length) }))
    assert.deepEqual(tokens, [false, true])
  })

  it('need the files of a certificate, relative to the file of the configuration', () => {
    const tls = { cert: 'font.ttf', key: 'font.ttf' }
    writeFileSync(file, JSON.stringify({ server: { tls } }))
    const found = join(folder, 'font.ttf')
    assert.deepEqual(loadConfig({ config: file }, {}).tls, { cert: found, key: found })
    for (const name of ['cert', 'key']) {
      writeFileSync(file, JSON.stringify({ server: { tls: { ...tls, [name]: 'gone.pem' } } }))
      const message = new RegExp(`server\\.tls\\.${name}: .*gone\\.pem does not exist`)
      assert.throws(() => loadConfig({ config: file }, {}), { message })
    }
  })

  it('let a workspace send the largest body and the largest recording with its half', () => {
    const audio = (spool: number) => ({ audio: { max_upload_bytes: 5000, max_spool_bytes: spool } })
    assert.deepEqual([accepted(audio(9999)), accepted(audio(10_000))], [false, true])
  })

  it('leave a quarter of the memory of a container to requests, or half of the heap', (t) => {
    writeFileSync(file, JSON.stringify({ server: { max_body_bytes: 1024 } }))
    const memory = (): number => loadConfig({ config: file }, {}).maxRequestMemoryBytes
    const heap = Math.floor(getHeapStatistics().heap_size_limit / 2)
    const container = t.mock.method(process, 'constrainedMemory', () => 400_000_001)
    assert.equal(memory(), Math.min(100_000_000, heap))
    container.mock.mockImplementation(() => 0)
    assert.equal(memory(), Math.min(Math.floor(totalmem() / 4), heap))
  })

  it('show the line of a wrong ABN', () => {
    writeFileSync(file, '{\n"seller": {"name": "Weir",\n"abn": "51824753557"}}')
    assert.throws(
      () => loadConfig({ config: file }, {}),
      new ConfigError(`${file}:3: seller.abn: must be an 11-digit ABN with correct check digits, but is "51824753557"`),
    )
  })

  it('refuse unknown fields', () => {
    const unknown = { unknown: 1 }
    for (const part of [
      'server',
      'ledger',
      'invoice',
      'rate_limit',
      'images',
      'prompts',
      'audio',
      'console',
      'log',
      'tracing',
      'metrics',
    ]) {
      assert.ok(accepted({ [part]: {} }) && !accepted({ [part]: unknown }), part)
    }
    assert.ok(accepted({ seller }) && !accepted({ seller: { ...seller, ...unknown } }))
    assert.ok(!accepted({ files: { kind: 'local', public_url: 'http://weir', ...unknown } }))
    assert.ok(!accepted(unknown))
  })
})

describe('the settings in force', () => {
  const everything = {
    server: { host: '10.0.0.1', port: 1, admin_host: '10.0.0.2', admin_port: 2, drain_ms: 3, max_body_bytes: 4000 },
    data_dir: 'there',
    database: 'postgres://weir@db/weir',
    ledger: { max_journal_bytes: 5_000_000, wait_for: 'database' },
    coordination: 'redis://r',
    operator_token: 'a-token-of-the-file',
    rate_limit: { requests_per_minute: 6, unauthenticated_per_minute: 7 },
    images: { allowed_hosts: ['h'], max_bytes: 8000, max_side_px: 9 },
    prompts: { changing_lines: ['Date: '] },
    audio: { max_upload_bytes: 10_000, max_spool_bytes: 20_000 },
    batches: {
      max_file_bytes: 10_001,
      max_files: 12,
      max_stored_bytes: 10_002,
      retention_days: 13,
      max_lines: 14,
      max_queued_lines: 15,
      max_in_flight: 16,
    },
    invoice: { link_days: 11, fonts: ['font.ttf'] },
    console: { models: 'public' },
    log: { level: 'warn' },
    tracing: { endpoint: 'http://collector', sample: 0.5 },
    metrics: { endpoint: 'http://metrics', gen_ai_names: 'both' },
    seller,
    smtp: { host: 'mail', port: 25, secure: true, from: 'a@b.example' },
    alerts: {
      webhooks: [
        {
          name: 'a',
          url: 'https://a.example/b',
          secret_env: 'S',
          allow_private: true,
          events: ['key.created'],
          workspace: 'w',
        },
        { name: 'b', url: 'https://b.example/?token=secret', secret_env: 'S' },
      ],
      emails: [{ to: 'a@b.example' }],
      spend_thresholds: [90],
    },
    models: [],
  }
  const settingsOf = (content: object, environment: NodeJS.ProcessEnv = {}, overrides: object = {}) => {
    writeFileSync(file, JSON.stringify(content))
    const { settings } = loadConfig({ config: file, ...overrides }, environment)
    return new Map(settings.map(({ key, value, source }) => [key, { value, source }]))
  }

  it('are those of the file, each with its place', () => {
    const shown = settingsOf(everything)
    const values = Object.fromEntries([...shown].map(([key, { value }]) => [key, value]))
    const { 'server.max_request_memory_bytes': memory, ...rest } = values
    assert.ok(Number(memory) > 0)
    assert.deepEqual(rest, {
      'server.host': '10.0.0.1',
      'server.port': 1,
      'server.admin_host': '10.0.0.2',
      'server.admin_port': 2,
      'server.drain_ms': 3,
      'server.max_body_bytes': 4000,
      data_dir: join(folder, 'there'),
      database: 'postgres://db/weir',
      'ledger.max_journal_bytes': 5_000_000,
      'ledger.wait_for': 'database',
      coordination: 'redis://r',
      'rate_limit.requests_per_minute': 6,
      'rate_limit.unauthenticated_per_minute': 7,
      'images.allowed_hosts': ['h'],
      'images.max_bytes': 8000,
      'images.max_side_px': 9,
      'prompts.changing_lines': ['Date: '],
      'audio.max_upload_bytes': 10_000,
      'audio.max_spool_bytes': 20_000,
      'batches.max_file_bytes': 10_001,
      'batches.max_files': 12,
      'batches.max_stored_bytes': 10_002,
      'batches.retention_days': 13,
      'batches.max_lines': 14,
      'batches.max_queued_lines': 15,
      'batches.max_in_flight': 16,
      'invoice.link_days': 11,
      'invoice.fonts': [join(folder, 'font.ttf')],
      'alerts.webhooks': ['a https://a.example/b private key.created of w', 'b https://b.example/'],
      'alerts.emails': ['mailto:a@b.example'],
      'alerts.spend_thresholds': ['90'],
      'console.models': 'public',
      'log.level': 'warn',
      'tracing.endpoint': 'http://collector/v1/traces',
      'tracing.sample': 0.5,
      'metrics.endpoint': 'http://metrics/v1/metrics',
      'metrics.gen_ai_names': 'both',
      catalog: file,
      'seller.name': 'Weir',
      'seller.abn': '51824753556',
      'smtp.host': 'mail',
      'smtp.port': 25,
      'smtp.secure': 'true',
      'smtp.from': 'a@b.example',
      operator_token: 'set',
    })
    const places = [...shown].filter(([key]) => !['server.max_request_memory_bytes', 'catalog'].includes(key))
    for (const [key, { source }] of places) assert.match(source, /weir\.yaml:1$/, key)
  })

  it('have defaults', () => {
    const shown = settingsOf({ models: [] })
    const values = Object.fromEntries([...shown].map(([key, { value }]) => [key, value]))
    const { 'server.max_request_memory_bytes': _memory, ...rest } = values
    assert.deepEqual(rest, {
      'server.host': '127.0.0.1',
      'server.port': 8080,
      'server.admin_host': '127.0.0.1',
      'server.admin_port': 8081,
      'server.drain_ms': 30_000,
      'server.max_body_bytes': 20 * 2 ** 20,
      data_dir: join(folder, 'data'),
      database: 'sqlite',
      'ledger.max_journal_bytes': 512 * 2 ** 20,
      'ledger.wait_for': 'journal',
      coordination: 'memory',
      'rate_limit.requests_per_minute': 600,
      'rate_limit.unauthenticated_per_minute': 60,
      'images.allowed_hosts': [],
      'images.max_bytes': 20 * 2 ** 20,
      'images.max_side_px': 8192,
      'prompts.changing_lines': [],
      'audio.max_upload_bytes': 25 * 2 ** 20,
      'audio.max_spool_bytes': 8 * 2 ** 30,
      'batches.max_file_bytes': 200 * 2 ** 20,
      'batches.max_files': 1000,
      'batches.max_stored_bytes': 10 * 2 ** 30,
      'batches.retention_days': 30,
      'batches.max_lines': 50_000,
      'batches.max_queued_lines': 1_000_000,
      'batches.max_in_flight': 64,
      'invoice.link_days': 90,
      'invoice.fonts': [],
      'alerts.webhooks': [],
      'alerts.emails': [],
      'alerts.spend_thresholds': ['50', '80', '100'],
      'console.models': 'members',
      'log.level': 'info',
      'metrics.gen_ai_names': 'current',
      catalog: file,
      operator_token: 'in the file operator-token',
    })
    assert.ok([...shown.values()].every(({ source }) => source === 'default'))
  })

  it('hide what may be a secret in the address of a webhook, and show that it has changed', () => {
    const load = (token: string) => {
      const [hook] = everything.alerts.webhooks
      const webhooks = [{ ...hook, url: `https://a.example/b?token=${token}` }]
      writeFileSync(file, JSON.stringify({ ...everything, alerts: { webhooks } }))
      return loadConfig({ config: file }, {}).settings
    }
    const [before, after] = [load('first'), load('second')]
    assert.doesNotMatch(JSON.stringify(before), /first/)
    assert.deepEqual(
      pendingSettings(before, after).map(({ key }) => key),
      ['alerts.webhooks'],
    )
    assert.deepEqual(pendingSettings(before, load('first')), [])
  })

  it('name the option or the variable that takes precedence', () => {
    const environment = {
      WEIR_HOST: '10.0.0.3',
      WEIR_PORT: '3',
      WEIR_ADMIN_PORT: '4',
      WEIR_DATA_DIR: '/there',
      WEIR_DATABASE_URL: 'sqlite',
      WEIR_REDIS_URL: 'memory',
      WEIR_OPERATOR_TOKEN: 'a-token-of-the-environment',
    }
    const sources = (overrides: object) => {
      const shown = settingsOf(everything, environment, overrides)
      return [
        'server.host',
        'server.port',
        'server.admin_port',
        'data_dir',
        'database',
        'coordination',
        'operator_token',
      ].map((key) => shown.get(key)?.source)
    }
    const names = Object.keys(environment)
    assert.deepEqual(sources({}), names)
    const [host, , admin, , ...rest] = names
    assert.deepEqual(sources({ port: '5', data: '/here' }), [host, '--port', admin, '--data', ...rest])
  })
})
