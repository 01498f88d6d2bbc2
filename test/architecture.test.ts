import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { describe, it } from 'node:test'

/**
 * Which part of src/ may import which:
 * core ← ports ← {pipeline, dialects, catalog, accounts, adapters} ← endpoints ← http ← compose ← commands ← main.
 */
interface Rule {
  /** A folder or a file. A file belongs to the longest part that holds it. */
  readonly part: string
  /** Parts, or single files, that it may import besides its own part. */
  readonly may: readonly string[]
  /** Packages it may import; undefined: any. */
  readonly packages?: readonly string[]
}

const below = ['core', 'ports']
/** Adapters know neither each other nor http. */
const adapters = [
  'admission',
  'rate-limit',
  'spending',
  'changes',
  'ledger',
  'store',
  'engines',
  'media',
  'files',
  'telemetry',
]
const shared = ['accounts', 'catalog', 'billing']
const endpoints = ['chat', 'completions', 'embeddings', 'rerank', 'images', 'audio'].map((it) => `endpoints/${it}`)
/** Other forms of a chat. They know its endpoint, and it does not know them. */
const chatForms = ['responses', 'messages'].map((it) => `endpoints/${it}`)

/** Writes code for readers, which reads the environment and calls fetch. It is text, and this file imports nothing. */
const CODE_SAMPLES = 'http/docs/code-samples.ts'

const rules: readonly Rule[] = [
  // Pure modules only: no files, no sockets, no database.
  { part: 'core', may: [], packages: ['typebox', 'yaml', 'node:buffer', 'node:crypto', 'node:zlib'] },
  { part: 'ports', may: ['core'], packages: [] },
  { part: 'pipeline', may: below, packages: [] },
  // How servers word things: as pure as the core.
  { part: 'dialects', may: ['core'], packages: [] },
  ...[...adapters, 'accounts', 'catalog'].map((part) => ({
    part,
    may: part === 'engines' ? [...below, 'http-client/index.ts'] : below,
  })),
  // A library of its own, which could be used without Weir. Engines are called through its interface.
  {
    part: 'http-client',
    may: [],
    packages: ['node:diagnostics_channel', 'node:net', 'node:tls'],
  },
  // The connection to Redis, and the adapters that use it.
  { part: 'redis', may: below },
  ...['admission/redis', 'rate-limit/redis.ts', 'spending/redis', 'changes/redis'].map((part) => ({
    part,
    may: [...below, part.split('/', 1)[0] ?? '', 'redis'],
  })),
  // Queries know no particular database, and only open.ts knows which one there is.
  { part: 'store/queries', may: [...below, 'store'], packages: [] },
  {
    part: 'store/sqlite',
    may: ['store', 'core/disk-failure.ts', 'core/refused-write.ts', 'core/journal/segment-names.ts'],
    packages: ['node:crypto', 'node:fs', 'node:path', 'node:sqlite', 'node:url', 'node:worker_threads'],
  },
  {
    part: 'store/postgres',
    may: ['store', 'core/address-without-password.ts', 'core/refused-write.ts'],
    packages: ['node:fs', 'pg'],
  },
  {
    part: 'store/open.ts',
    may: [
      ...below,
      'store/database.ts',
      'store/queries',
      'store/postgres/client.ts',
      'store/postgres/moves.ts',
      'store/sqlite/client.ts',
      'store/sqlite/in-this-thread.ts',
      'store/sqlite/open-database.ts',
    ],
  },
  {
    part: 'store/move.ts',
    may: [
      ...below,
      'store/copy-tables.ts',
      'store/open.ts',
      'store/postgres',
      'store/sqlite/in-this-thread.ts',
      'store/sqlite/open-database.ts',
    ],
    packages: ['node:fs', 'node:path'],
  },
  // Amounts and documents, from accounts and any store.
  { part: 'billing', may: [...below, 'accounts'] },

  // What the endpoints share, and the endpoints, which do not know each other.
  { part: 'endpoints', may: [...below, 'dialects'], packages: ['typebox'] },
  ...endpoints.map((part) => ({
    part,
    may: [...below, 'dialects', 'endpoints'],
    packages: ['gpt-tokenizer', 'node:crypto', 'node:module', 'typebox'],
  })),

  ...chatForms.map((part) => ({
    part,
    may: [...below, 'dialects', 'endpoints', 'endpoints/chat'],
    packages: ['typebox'],
  })),

  // What both listeners share, and the two APIs, which do not know each other.
  { part: 'http', may: [...below, 'accounts', 'billing', CODE_SAMPLES] },
  { part: CODE_SAMPLES, may: [], packages: [] },
  // What both consoles are served by.
  { part: 'http/console', may: [...below, 'accounts', 'http'] },
  {
    part: 'http/public',
    may: [
      ...below,
      ...shared,
      'endpoints',
      ...endpoints,
      ...chatForms,
      'http',
      'http/console',
      'pipeline',
      'telemetry',
    ],
  },
  { part: 'http/admin', may: [...below, ...shared, 'http', 'http/console', 'telemetry'] },

  // The embedded engine. The service runs `service`; each host process runs `host`; both know the model files.
  { part: 'embedded/manifest', may: ['core'], packages: [] },
  { part: 'embedded/files', may: ['embedded/manifest'] },
  { part: 'embedded/service', may: [...below, 'embedded/manifest', 'embedded/files'] },
  {
    part: 'embedded/host',
    may: [
      'core',
      'embedded/manifest',
      'embedded/files/model-paths.ts',
      'embedded/host/runtime',
      'embedded/host/wire',
      'embedded/host/llama/runtime.ts',
      'embedded/host/onnx/runtime.ts',
    ],
  },
  // What every runtime implements, the HTTP in front of it, and the two runtimes, which do not know each other.
  { part: 'embedded/host/runtime', may: ['core', 'embedded/manifest'] },
  { part: 'embedded/host/wire', may: ['core', 'embedded/host/runtime'] },
  { part: 'embedded/host/llama', may: ['core', 'embedded/manifest', 'embedded/host/runtime'] },
  { part: 'embedded/host/onnx', may: ['core', 'embedded/manifest', 'embedded/host/runtime'] },

  {
    part: 'running-service.ts',
    may: [
      'core',
      'ports/cache-use.ts',
      'ports/contradicted-counts.ts',
      'ports/coordination.ts',
      'store/sqlite/service-lock.ts',
      'workers/cache-use.ts',
      'workers/directories.ts',
    ],
  },
  { part: 'workers/cache-use.ts', may: ['ports/cache-use.ts'] },
  { part: 'workers/directories.ts', may: [], packages: ['node:fs', 'node:path'] },
  // Several replicas as processes of one machine.
  {
    part: 'workers',
    may: [
      'config.ts',
      'config-file.ts',
      'http/port.ts',
      'running-service.ts',
      'telemetry/merged-metrics.ts',
      'workers/directories.ts',
    ],
  },
  {
    part: 'command-socket.ts',
    may: ['core', 'ports/cache-use.ts', 'ports/changes.ts', 'ports/contradicted-counts.ts', 'running-service.ts'],
  },
  // The journal and the store meet here: on a thread of its own, and for commands.
  { part: 'projector', may: [...below, 'ledger', 'store/open.ts', 'system-clock.ts'] },
  { part: 'settled-books.ts', may: [...below, 'ledger', 'store/open.ts', 'running-service.ts', 'system-clock.ts'] },
  {
    part: 'service-log.ts',
    may: [
      'core/money/money.ts',
      'ports/spending.ts',
      'changes/redis',
      'draining.ts',
      'embedded/service',
      'engines',
      'ledger/open-ledger.ts',
      'redis/link.ts',
      'store/open.ts',
      'telemetry',
    ],
    packages: [],
  },
  { part: 'draining.ts', may: ['ports'], packages: [] },
  { part: 'live-settings.ts', may: ['core', 'config.ts'], packages: [] },
  { part: 'system-clock.ts', may: ['ports'], packages: [] },
  { part: 'system-disk.ts', may: ['core/disk-room.ts'], packages: ['node:fs'] },
  { part: 'version.ts', may: [] },
  // The catalog may stand in the same file, so its schema is part of the file's.
  { part: 'config-file.ts', may: ['core', 'catalog/file.ts'] },
  {
    part: 'config-catalog.ts',
    may: ['core', 'catalog/file.ts', 'config-file.ts', 'embedded/service/default-catalog.ts'],
    packages: ['node:fs', 'node:path'],
  },
  { part: 'config-storage.ts', may: ['core', 'catalog/file.ts', 'config-file.ts'], packages: [] },
  { part: 'config.ts', may: ['core', 'catalog/file.ts', 'config-catalog.ts', 'config-file.ts', 'config-storage.ts'] },
  // The part of compose.ts that brings a catalog into force.
  {
    part: 'catalog-in-force.ts',
    may: [...below, 'catalog', 'embedded/service', 'dialects/listed-parameters.ts'],
  },
  // The part of compose.ts that opens what the catalog names.
  {
    part: 'open-engines.ts',
    may: [
      'catalog/lane-settings.ts',
      'config.ts',
      // What engines are asked besides their work. Endpoints know the rest.
      'dialects/engine-questions.ts',
      'embedded/service',
      'engines',
      'service-log.ts',
      'telemetry',
    ],
    packages: [],
  },
  // The part of compose.ts that takes changes in.
  {
    part: 'certificate.ts',
    may: ['core/checked-yaml.ts'],
    packages: ['node:crypto', 'node:fs', 'node:tls'],
  },
  {
    part: 'reloading.ts',
    may: ['ports', 'core', 'catalog/catalog.ts', 'config.ts', 'live-settings.ts'],
    packages: ['pino'],
  },
  // The part of compose.ts that opens the store, and the ledger in front of it.
  {
    part: 'bookkeeping.ts',
    may: [
      ...below,
      'config.ts',
      'ledger',
      'projector/thread.ts',
      'service-log.ts',
      'settled-books.ts',
      'store/open.ts',
      'telemetry',
    ],
    packages: [],
  },
  // The part of compose.ts that chooses how replicas agree.
  {
    part: 'coordination.ts',
    may: [...below, 'admission', 'rate-limit', 'changes', 'changes/redis', 'redis', 'redis-adapters.ts'],
  },
  // What of it needs Redis.
  {
    part: 'redis-adapters.ts',
    may: ['admission/redis', 'rate-limit/redis.ts', 'changes/redis', 'redis', 'spending/redis'],
    packages: [],
  },
  // The part of compose.ts that chooses who keeps spend limits.
  {
    part: 'spend-control.ts',
    may: [...below, 'accounts', 'redis/link.ts', 'redis-adapters.ts', 'spending', 'spending/redis'],
    packages: [],
  },
  {
    part: 'compose.ts',
    may: [
      ...below,
      'spend-control.ts',
      ...adapters.filter((part) => part !== 'store' && part !== 'engines'),
      'bookkeeping.ts',
      'service-log.ts',
      ...shared,
      'embedded/service',
      'http/server.ts',
      'http/public/public-api.ts',
      'http/admin/admin-api.ts',
      'http/admin/replicas.ts',
      'pipeline',
      'catalog-in-force.ts',
      'open-engines.ts',
      'certificate.ts',
      'reloading.ts',
      'config.ts',
      'command-socket.ts',
      'coordination.ts',
      'draining.ts',
      'changes/redis',
      'redis',
      'live-settings.ts',
      'running-service.ts',
      'workers/handed-port.ts',
      'workers/metrics.ts',
      'system-clock.ts',
      'system-disk.ts',
      'version.ts',
    ],
  },
  {
    part: 'commands',
    may: [
      'commands/terminal',
      ...below,
      ...shared,
      'embedded/service',
      'embedded/files',
      'embedded/manifest',
      'engines/address.ts',
      'dialects/health-check.ts',
      'dialects/listed-parameters.ts',
      'store/open.ts',
      'store/move.ts',
      // A backup is a copy of files, whatever is in them.
      'store/sqlite/backup.ts',
      'store/sqlite/restore.ts',
      'settled-books.ts',
      'changes/memory.ts',
      'changes/redis',
      'certificate.ts',
      'compose.ts',
      'config.ts',
      'workers',
      'workers/directories.ts',
      'running-service.ts',
      'system-clock.ts',
      'version.ts',
    ],
  },
  // How text looks on a terminal. It knows no command.
  { part: 'commands/terminal', may: ['core'], packages: ['node:util'] },
  { part: 'main.ts', may: ['core', 'commands', 'version.ts'] },
]

/** What only one place may do. */
const deeds: readonly { readonly what: string; readonly deed: RegExp; readonly where: (file: string) => boolean }[] = [
  {
    what: 'reads the environment',
    deed: /\bprocess\.env\b/,
    where: (file) => file === 'config.ts' || file === CODE_SAMPLES,
  },
  { what: 'calls fetch', deed: /(?<![.\w])(globalThis\.)?fetch\(/, where: (file) => file === CODE_SAMPLES },
  {
    // The supervisor sends nothing: it connects to see whether a socket has a server.
    what: 'calls out without undici',
    deed: /\bconnect\b[^\n]*from 'node:(net|tls)'|\brequest\b[^\n]*from 'node:https?'|from 'node:http2'/,
    where: (file) => file.startsWith('http-client/') || file === 'embedded/service/supervisor.ts',
  },
  {
    what: 'has a clock or chance of its own',
    deed: /\bDate\.now\(|\bnew Date\(\)|\bperformance\.|\bMath\.random\b|\brandom(Bytes|UUID|Int)\b|\bset(Timeout|Interval|Immediate)\(/,
    where: (file) => !file.startsWith('core/') && !file.startsWith('ports/'),
  },
]

/** Every break of the rules in files given as path → text. */
function breaksIn(files: ReadonlyMap<string, string>): string[] {
  return [...files].flatMap(([file, text]) => {
    const imports = importsOf(text)
      .map((name) => (name.startsWith('.') ? posix.join(posix.dirname(file), name) : name))
      .filter((name) => !mayImport(file, name))
      .map((name) => `${file} imports ${name}`)
    const done = deeds.filter(({ deed, where }) => deed.test(text) && !where(file))
    return imports.concat(done.map(({ what }) => `${file} ${what}`))
  })
}

const IMPORTS = [
  /^(?:import|export)\s[^'"]*?\bfrom\s*['"]([^'"]+)['"]/gm,
  /^import\s*['"]([^'"]+)['"]/gm,
  /\bimport\(\s*['"]([^'"]+)['"]/g,
]
/** A worker or a program that a file starts: the rules hold for it, but it is not imported. */
const STARTED = /\bnew URL\(\s*['"](\.?[^'":]+\.ts)['"]/g

function importsOf(text: string, patterns: readonly RegExp[] = [...IMPORTS, STARTED]): string[] {
  const found = patterns.flatMap((pattern) => [...text.matchAll(pattern)].map((match) => match[1] ?? ''))
  return found.map((name) => (name.endsWith('.ts') && !name.startsWith('.') ? `./${name}` : name))
}

function mayImport(file: string, name: string): boolean {
  const rule = ruleOf(file)
  if (!rule) return false
  if (!name.endsWith('.ts')) return rule.packages?.some((it) => isIn(name, it)) ?? true
  const part = ruleOf(name)?.part
  return part === rule.part || rule.may.some((it) => it === name || it === part)
}

function ruleOf(file: string): Rule | undefined {
  const holding = rules.filter(({ part }) => isIn(file, part))
  return holding.toSorted((one, other) => other.part.length - one.part.length)[0]
}

function isIn(file: string, part: string): boolean {
  return file === part || file.startsWith(`${part}/`)
}

/** Groups of files that import each other, type imports included. */
function circlesIn(files: ReadonlyMap<string, string>): string[][] {
  const imports = new Map(
    [...files].map(([file, text]) => [
      file,
      importsOf(text, IMPORTS)
        .filter((name) => name.startsWith('.'))
        .map((name) => posix.join(posix.dirname(file), name)),
    ]),
  )
  const circles: string[][] = []
  const finished = new Set<string>()
  function follow(file: string, way: readonly string[]): void {
    const met = way.indexOf(file)
    if (met >= 0) circles.push(way.slice(met))
    if (met >= 0 || finished.has(file)) return
    for (const next of imports.get(file) ?? []) follow(next, [...way, file])
    finished.add(file)
  }
  for (const file of files.keys()) follow(file, [])
  return circles
}

const LOADED = [/^(?:import|export)\s(?!type\b)[^'"]*?\bfrom\s*['"]([^'"]+)['"]/gm, /^import\s*['"]([^'"]+)['"]/gm]

/** Everything that is loaded with a file: packages and other files, without what is imported on demand. */
function loadedWith(first: string, files: ReadonlyMap<string, string>): ReadonlySet<string> {
  const loaded = new Set([first])
  for (const file of loaded) {
    const names = importsOf(files.get(file) ?? '', LOADED)
    for (const name of names) loaded.add(name.startsWith('.') ? posix.join(posix.dirname(file), name) : name)
  }
  return loaded
}

function sources(): Map<string, string> {
  const root = new URL('../src/', import.meta.url)
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
  return new Map(files.map((file) => [file, readFileSync(new URL(file, root), 'utf8')]))
}

describe('the parts of src/', () => {
  it('import only downwards, and do what only one of them may do nowhere else', () => {
    assert.deepEqual(breaksIn(sources()), [])
  })

  it('import each other in no circle, not even for types', () => {
    assert.deepEqual(circlesIn(sources()), [])
  })

  it('load with commands/serve.ts none of the packages that would make it a quarter slower or larger', () => {
    const onDemand = new Set([
      'gpt-tokenizer',
      'ioredis',
      'pdfkit',
      'node-llama-cpp',
      'onnxruntime-node',
      'sharp',
      'esbuild',
    ])
    const loaded = [...loadedWith('commands/serve.ts', sources())]
    assert.ok(loaded.includes('pino'))
    assert.deepEqual(
      loaded.filter((name) => onDemand.has(name.split('/', 1)[0] ?? '')),
      [],
    )
  })

  it('are all known, and all of them are looked at', () => {
    const files = [...sources().keys()]
    assert.deepEqual(
      files.filter((file) => !rules.some(({ part }) => isIn(file, part))),
      [],
    )
    assert.deepEqual(
      rules.filter(({ part }) => !files.some((file) => isIn(file, part))).map(({ part }) => part),
      [],
    )
    const imports = importsOf(sources().get('compose.ts') ?? '')
    for (const name of ['./bookkeeping.ts', './http/server.ts', 'node:path']) assert.ok(imports.includes(name), name)
  })
})

describe('the consoles', () => {
  it('run in browsers: they import packages for browsers, each other’s shared parts, and of the service only text', () => {
    const packages = new Set([
      'preact',
      'preact/hooks',
      'preact-iso',
      '@preact/signals',
      'uplot',
      'uplot/dist/uPlot.min.css',
    ])
    const texts = new Set([`src/${CODE_SAMPLES}`, 'src/core/bytes-text.ts'])
    const root = new URL('../console/', import.meta.url)
    const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((file) => /\.tsx?$/.test(file))
    assert.ok(files.length > 10)
    const wrong = files.flatMap((file) => {
      const [own] = file.split('/')
      return importsOf(readFileSync(new URL(file, root), 'utf8'))
        .map((name) => (name.startsWith('.') ? posix.join('console', posix.dirname(file), name) : name))
        .filter((name) => {
          const mayShare = ['shared', 'generated', 'styles', own].some((part) => name.startsWith(`console/${part}/`))
          return !mayShare && !packages.has(name) && !texts.has(name)
        })
        .map((name) => `${file} imports ${name}`)
    })
    assert.deepEqual(wrong, [])
  })
})

describe('the test of the parts', () => {
  const wrong: readonly [file: string, text: string, told: string][] = [
    ['core/money.ts', "import { readFileSync } from 'node:fs'", 'imports node:fs'],
    ['core/money.ts', "import { createServer } from 'node:http'", 'imports node:http'],
    ['core/money.ts', "import { DatabaseSync } from 'node:sqlite'", 'imports node:sqlite'],
    ['core/money.ts', "import { request } from 'undici'", 'imports undici'],
    ['core/money/money.ts', "import type { Clock } from '../../ports/clock.ts'", 'imports ports/clock.ts'],
    ['core/money.ts', 'const now = Date.now()', 'has a clock or chance of its own'],
    ['core/money.ts', 'const id = crypto.randomUUID()', 'has a clock or chance of its own'],
    ['ports/clock.ts', "import type { Config } from '../config.ts'", 'imports config.ts'],
    ['pipeline/admit.ts', "import { memoryAdmission } from '../admission/memory.ts'", 'imports admission/memory.ts'],
    ['pipeline/settle.ts', "import { pino } from 'pino'", 'imports pino'],
    ['store/open.ts', "import type {\n  Catalog,\n} from '../catalog/catalog.ts'", 'imports catalog/catalog.ts'],
    ['store/open.ts', "export { Exchange } from '../http/exchange.ts'", 'imports http/exchange.ts'],
    ['store/queries/usage.ts', "import { DatabaseSync } from 'node:sqlite'", 'imports node:sqlite'],
    ['store/queries/usage.ts', "import { openSqlite } from '../sqlite/client.ts'", 'imports store/sqlite/client.ts'],
    ['store/sqlite/worker.ts', "import { usageQueries } from '../queries/usage.ts'", 'imports store/queries/usage.ts'],
    ['store/sqlite/thread.ts', "import { rate } from '../../core/money/rating.ts'", 'imports core/money/rating.ts'],
    ['compose.ts', "import { openSqlite } from './store/sqlite/client.ts'", 'imports store/sqlite/client.ts'],
    ['rate-limit/memory.ts', "const it = await import('../admission/memory.ts')", 'imports admission/memory.ts'],
    ['rate-limit/memory.ts', "import { openLink } from '../redis/link.ts'", 'imports redis/link.ts'],
    [
      'redis/link.ts',
      "import { redisAdmission } from '../admission/redis/admission.ts'",
      'imports admission/redis/admission.ts',
    ],
    ['engines/upstream.ts', "import '../store/open.ts'", 'imports store/open.ts'],
    [
      'engines/upstream.ts',
      "import { Connection } from '../http-client/connection.ts'",
      'imports http-client/connection.ts',
    ],
    ['http-client/client.ts', "import type { Job } from '../core/job.ts'", 'imports core/job.ts'],
    ['http-client/client.ts', "import { request } from 'undici'", 'imports undici'],
    ['media/remote-image.ts', "import { openClient } from '../http-client/index.ts'", 'imports http-client/index.ts'],
    ['engines/upstream.ts', "new Worker(new URL('../store/worker.ts', import.meta.url))", 'imports store/worker.ts'],
    ['catalog/catalog.ts', "import type { Config } from '../config.ts'", 'imports config.ts'],
    ['http/public/models.ts', "import { openStore } from '../../store/open.ts'", 'imports store/open.ts'],
    [
      'http/public/models.ts',
      "import { openUpstream } from '../../engines/upstream.ts'",
      'imports engines/upstream.ts',
    ],
    ['http/public/models.ts', "import { startService } from '../../compose.ts'", 'imports compose.ts'],
    ['commands/keys.ts', "import { openSqlite } from '../store/sqlite/client.ts'", 'imports store/sqlite/client.ts'],
    ['commands/backup.ts', "import { migrate } from '../store/sqlite/migrate.ts'", 'imports store/sqlite/migrate.ts'],
    ['http/admin/backup.ts', "import '../../store/sqlite/backup.ts'", 'imports store/sqlite/backup.ts'],
    ['store/sqlite/worker.ts', "import { rate } from '../../core/money/rating.ts'", 'imports core/money/rating.ts'],
    ['commands/command.ts', "import { memoryAdmission } from '../admission/memory.ts'", 'imports admission/memory.ts'],
    ['compose.ts', "import { keys } from './commands/keys.ts'", 'imports commands/keys.ts'],
    ['version.ts', "import { config } from './config.ts'", 'imports config.ts'],
    ['commands/terminal/table.ts', "import { print } from '../command.ts'", 'imports commands/command.ts'],
    ['commands/terminal/view.ts', "import { readFileSync } from 'node:fs'", 'imports node:fs'],
    ['live-settings.ts', "import { openStore } from './store/open.ts'", 'imports store/open.ts'],
    ['running-service.ts', "import { listen } from './http/server.ts'", 'imports http/server.ts'],
    ['http/public/audio.ts', "import { openai } from '../../dialects/openai.ts'", 'imports dialects/openai.ts'],
    ['http/public/models.ts', "const port = process.env['PORT']", 'reads the environment'],
    ['http/docs/docs-page.ts', 'fetch(url)', 'calls fetch'],
    [CODE_SAMPLES, "import { errorTable } from '../../core/errors.ts'", 'imports core/errors.ts'],
    ['engines/upstream.ts', 'const response = await fetch(url)', 'calls fetch'],
    ['files/s3.ts', "import { request } from 'node:https'", 'calls out without undici'],
    ['files/s3.ts', "import { connect as open, type Socket } from 'node:tls'", 'calls out without undici'],
    ['files/s3.ts', "import * as http from 'node:http2'", 'calls out without undici'],
    ['engines/upstream.ts', 'await globalThis.fetch(url)', 'calls fetch'],
    ['http/server.ts', "import { publicApi } from './public/public-api.ts'", 'imports http/public/public-api.ts'],
    ['http/admin/keys.ts', "import { json } from '../public/models.ts'", 'imports http/public/models.ts'],
    ['endpoints/chat/job.ts', "import type { Exchange } from '../../http/exchange.ts'", 'imports http/exchange.ts'],
    ['endpoints/chat/job.ts', "import { schema } from '../audio/schema.ts'", 'imports endpoints/audio/schema.ts'],
    [
      'endpoints/completions/schema.ts',
      "import { schema } from '../chat/schema.ts'",
      'imports endpoints/chat/schema.ts',
    ],
    [
      'dialects/openai.ts',
      "import { readUsage } from '../endpoints/generation-usage.ts'",
      'imports endpoints/generation-usage.ts',
    ],
    ['commands/chat.ts', "import { dialects } from '../dialects/index.ts'", 'imports dialects/index.ts'],
    ['compose.ts', "import { dialects } from './dialects/index.ts'", 'imports dialects/index.ts'],
    [
      'compose.ts',
      "import { supportFor } from './dialects/parameter-support.ts'",
      'imports dialects/parameter-support.ts',
    ],
    ['running-service.ts', "import type { Engine } from './ports/engine.ts'", 'imports ports/engine.ts'],
    ['endpoints/parameters.ts', "import { schema } from './chat/schema.ts'", 'imports endpoints/chat/schema.ts'],
    ['embedded/service/supervisor.ts', "import '../host/host.ts'", 'imports embedded/host/host.ts'],
    ['embedded/service/supervisor.ts', "import '../host/wire/chat.ts'", 'imports embedded/host/wire/chat.ts'],
    ['embedded/files/download.ts', "import '../service/supervisor.ts'", 'imports embedded/service/supervisor.ts'],
    ['embedded/manifest/hub.ts', "import type { Engine } from '../../ports/engine.ts'", 'imports ports/engine.ts'],
    ['embedded/host/host.ts', "import '../files/download.ts'", 'imports embedded/files/download.ts'],
    ['embedded/host/wire/chat.ts', "import '../llama/chat-model.ts'", 'imports embedded/host/llama/chat-model.ts'],
    ['embedded/host/wire/chat.ts', "import '../loaded-models.ts'", 'imports embedded/host/loaded-models.ts'],
    ['embedded/host/wire/audio.ts', "import '../../../http/upload.ts'", 'imports http/upload.ts'],
    ['embedded/host/llama/runtime.ts', "import '../onnx/runtime.ts'", 'imports embedded/host/onnx/runtime.ts'],
    ['embedded/host/llama/runtime.ts', "import '../../../store/open.ts'", 'imports store/open.ts'],
    ['helpers/strings.ts', "import { x } from '../core/money.ts'", 'imports core/money.ts'],
  ]
  for (const [file, text, told] of wrong) {
    it(`fails where ${file} ${told}`, () => assert.deepEqual(breaksIn(new Map([[file, text]])), [`${file} ${told}`]))
  }

  it('finds circles, through types too', () => {
    const files = new Map([
      ['core/a.ts', "import type { B } from './b.ts'"],
      ['core/b.ts', "import { c } from './c.ts'"],
      ['core/c.ts', "import { d } from './d.ts'\nexport type { A } from './a.ts'"],
      ['core/d.ts', ''],
    ])
    assert.deepEqual(circlesIn(files), [['core/a.ts', 'core/b.ts', 'core/c.ts']])
  })

  it('passes what is allowed', () => {
    const right: readonly [string, string][] = [
      ['core/money.ts', "import { rate } from './rating.ts'\nimport { hash } from 'node:crypto'"],
      [
        'store/open.ts',
        "import type { Store } from '../ports/store.ts'\nimport { openSqlite } from './sqlite/client.ts'",
      ],
      ['store/queries/usage.ts', "import type { Database } from '../database.ts'"],
      ['bookkeeping.ts', "import { openStore } from './store/open.ts'"],
      ['compose.ts', "import { openBookkeeping } from './bookkeeping.ts'\nimport { listen } from './http/server.ts'"],
      ['commands/command.ts', "import { openStore } from '../store/open.ts'"],
      ['commands/doctor.ts', "import { healthCheckOf } from '../dialects/health-check.ts'"],
      ['config.ts', 'const port = process.env.PORT'],
      ['http/public/chat.ts', 'await parts.fetch(url); fetchImage(url); agent.fetch(it)'],
    ]
    assert.deepEqual(breaksIn(new Map(right)), [])
  })
})
