import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { describe, it } from 'node:test'

/**
 * Which part of src/ may import which (DESIGN "Layout"):
 * core ← ports ← {pipeline, catalog, adapters} ← http ← compose ← commands ← main.
 */
interface Rule {
  /** A folder, or a file. */
  readonly part: string
  /** Folders and files it may import, besides what is in the same folder of src/. */
  readonly may: readonly string[]
  /** Packages it may import; undefined: any. */
  readonly packages?: readonly string[]
}

const below = ['core', 'ports.ts']
/** Adapters and what stands beside them know neither each other nor http. */
const beside = ['admission', 'limits', 'store', 'engines', 'media', 'files', 'accounts', 'catalog', 'telemetry.ts']

const rules: readonly Rule[] = [
  // Pure modules only: no files, no sockets, no database.
  { part: 'core', may: [], packages: ['typebox', 'yaml', 'node:buffer', 'node:crypto', 'node:zlib'] },
  { part: 'ports.ts', may: ['core'], packages: [] },
  { part: 'pipeline.ts', may: below, packages: [] },
  // How servers word things: as pure as the core.
  { part: 'dialects', may: ['core'], packages: [] },
  ...beside.map((part) => ({ part, may: below })),
  // What is owed, and its documents: of accounts, over any store.
  { part: 'billing', may: [...below, 'accounts'] },
  { part: 'metrics.ts', may: [], packages: [] },
  { part: 'log-lines.ts', may: [], packages: ['pino'] },
  { part: 'telemetry.ts', may: ['metrics.ts', 'log-lines.ts'] },
  // A process of its own, which the service knows as one more upstream.
  { part: 'embedded', may: below },
  // The engine host is a program of its own; the service sees it through these alone.
  { part: 'embedded', may: [...below, 'embedded'] },
  { part: 'running-service.ts', may: ['store/service-lock.ts'] },
  { part: 'system-clock.ts', may: ['ports.ts'], packages: [] },
  // The catalog may stand in the same file, so its schema is part of the file's.
  { part: 'config.ts', may: ['core', 'catalog/file.ts', 'embedded/default-catalog.ts'] },
  {
    part: 'http',
    may: [
      ...below,
      'pipeline.ts',
      'accounts',
      'billing',
      'catalog',
      'telemetry.ts',
      // How an engine's answer is read depends on the endpoint; which engine answers does not.
      'dialects',
    ],
  },
  {
    part: 'compose.ts',
    may: [
      ...below,
      ...beside,
      'billing',
      'embedded',
      'http',
      'pipeline.ts',
      'config.ts',
      'running-service.ts',
      'system-clock.ts',
    ],
  },
  { part: 'commands/command.ts', may: ['store/sqlite.ts'] },
  {
    part: 'commands',
    may: [
      ...below,
      'dialects',
      'embedded',
      'engines/address.ts',
      'accounts',
      'billing',
      'catalog',
      'compose.ts',
      'config.ts',
      'running-service.ts',
      'system-clock.ts',
    ],
  },
  { part: 'main.ts', may: ['core', 'commands'] },
]

/** What only one place may do. */
const deeds: readonly { readonly what: string; readonly deed: RegExp; readonly where: (file: string) => boolean }[] = [
  {
    what: 'reads the environment',
    deed: /\bprocess\.env\b/,
    where: (file) => file === 'config.ts',
  },
  { what: 'calls fetch', deed: /(?<![.\w])(globalThis\.)?fetch\(/, where: () => false },
  {
    what: 'has a clock or chance of its own',
    deed: /\bDate\.now\(|\bnew Date\(\)|\bperformance\.|\bMath\.random\b|\brandom(Bytes|UUID|Int)\b|\bset(Timeout|Interval|Immediate)\(/,
    where: (file) => !file.startsWith('core/') && file !== 'ports.ts',
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
  /\bnew URL\(\s*['"](\.?[^'":]+\.ts)['"]/g,
]

function importsOf(text: string): string[] {
  const found = IMPORTS.flatMap((pattern) => [...text.matchAll(pattern)].map((match) => match[1] ?? ''))
  return found.map((name) => (name.endsWith('.ts') && !name.startsWith('.') ? `./${name}` : name))
}

function mayImport(file: string, name: string): boolean {
  const mine = rules.filter(({ part }) => isIn(file, part))
  if (!name.endsWith('.ts')) {
    return mine.some(({ packages }) => packages === undefined || packages.some((it) => isIn(name, it)))
  }
  const [folder = ''] = file.split('/')
  if (folder !== file && isIn(name, folder)) return true
  return mine.some(({ may }) => may.some((part) => isIn(name, part)))
}

function isIn(file: string, part: string): boolean {
  return file === part || file.startsWith(`${part}/`)
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
    for (const name of ['./store/sqlite.ts', './http/server.ts', 'node:crypto']) assert.ok(imports.includes(name), name)
  })
})

describe('the test of the parts', () => {
  const wrong: readonly [file: string, text: string, told: string][] = [
    ['core/money.ts', "import { readFileSync } from 'node:fs'", 'imports node:fs'],
    ['core/money.ts', "import { createServer } from 'node:http'", 'imports node:http'],
    ['core/money.ts', "import { DatabaseSync } from 'node:sqlite'", 'imports node:sqlite'],
    ['core/money.ts', "import { request } from 'undici'", 'imports undici'],
    ['core/money.ts', "import type { Clock } from '../ports.ts'", 'imports ports.ts'],
    ['core/money.ts', 'const now = Date.now()', 'has a clock or chance of its own'],
    ['core/money.ts', 'const id = crypto.randomUUID()', 'has a clock or chance of its own'],
    ['ports.ts', "import type { Config } from './config.ts'", 'imports config.ts'],
    ['pipeline.ts', "import { memoryAdmission } from './admission/memory.ts'", 'imports admission/memory.ts'],
    ['pipeline.ts', "import { pino } from 'pino'", 'imports pino'],
    ['store/sqlite.ts', "import type {\n  Catalog,\n} from '../catalog/catalog.ts'", 'imports catalog/catalog.ts'],
    ['store/sqlite.ts', "export { Exchange } from '../http/exchange.ts'", 'imports http/exchange.ts'],
    ['limits/memory.ts', "const it = await import('../admission/memory.ts')", 'imports admission/memory.ts'],
    ['engines/upstream.ts', "import '../store/sqlite.ts'", 'imports store/sqlite.ts'],
    ['engines/upstream.ts', "new Worker(new URL('../store/worker.ts', import.meta.url))", 'imports store/worker.ts'],
    ['catalog/catalog.ts', "import type { Config } from '../config.ts'", 'imports config.ts'],
    ['http/models.ts', "import { sqliteStore } from '../store/sqlite.ts'", 'imports store/sqlite.ts'],
    ['http/models.ts', "import { openUpstream } from '../engines/upstream.ts'", 'imports engines/upstream.ts'],
    ['http/models.ts', "import { startService } from '../compose.ts'", 'imports compose.ts'],
    ['commands/keys.ts', "import { sqliteStore } from '../store/sqlite.ts'", 'imports store/sqlite.ts'],
    ['commands/command.ts', "import { memoryAdmission } from '../admission/memory.ts'", 'imports admission/memory.ts'],
    ['compose.ts', "import { keys } from './commands/keys.ts'", 'imports commands/keys.ts'],
    ['http/models.ts', "const port = process.env['PORT']", 'reads the environment'],
    ['engines/upstream.ts', 'const response = await fetch(url)', 'calls fetch'],
    ['engines/upstream.ts', 'await globalThis.fetch(url)', 'calls fetch'],
    ['helpers/strings.ts', "import { x } from '../core/money.ts'", 'imports core/money.ts'],
  ]
  for (const [file, text, told] of wrong) {
    it(`fails where ${file} ${told}`, () => assert.deepEqual(breaksIn(new Map([[file, text]])), [`${file} ${told}`]))
  }

  it('passes what is allowed', () => {
    const right: readonly [string, string][] = [
      ['core/money.ts', "import { rate } from './rating.ts'\nimport { hash } from 'node:crypto'"],
      ['store/sqlite.ts', "import type { Store } from '../ports.ts'\nimport { rows } from './schema.ts'\nimport 'pg'"],
      ['compose.ts', "import { sqliteStore } from './store/sqlite.ts'\nimport { listen } from './http/server.ts'"],
      ['commands/command.ts', "import { sqliteStore } from '../store/sqlite.ts'"],
      ['config.ts', 'const port = process.env.PORT'],
      ['http/chat.ts', 'await parts.fetch(url); fetchImage(url); agent.fetch(it)'],
    ]
    assert.deepEqual(breaksIn(new Map(right)), [])
  })
})
