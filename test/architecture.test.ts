import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { describe, it } from 'node:test'
import {
  CODE_SAMPLES,
  CONTRACT,
  LOCAL_MODELS,
  notPure,
  parts,
  publicFiles,
  pure,
  type Part,
} from './architecture-parts.ts'

/** Loose files in src/: main.ts, compose.ts, config.ts and pieces of compose.ts. */
const LOOSE_MAX = 8

/** Packages that pure code may import. */
const PURE_PACKAGES = ['typebox', 'yaml', 'node:buffer', 'node:crypto', 'node:zlib']

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
    where: (file) => file.startsWith('engines/http-client/') || /^local-models\/(service\/)?supervisor\.ts$/.test(file),
  },
  {
    what: 'has a clock or chance of its own',
    deed: /\bDate\.now\(|\bnew Date\(\)|\bperformance\.|\bMath\.random\b|\brandom(Bytes|UUID|Int)\b|\bset(Timeout|Interval|Immediate)\(/,
    where: (file) => !isPure(file),
  },
]

/** Every break of the rules in files given as path → text. */
function breaksIn(files: ReadonlyMap<string, string>): string[] {
  return [...files].flatMap(([file, text]) => {
    const imports = resolvedImports(file, text)
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

function resolvedImports(file: string, text: string, patterns?: readonly RegExp[]): string[] {
  return importsOf(text, patterns).map((name) => (name.startsWith('.') ? posix.join(posix.dirname(file), name) : name))
}

function mayImport(file: string, name: string): boolean {
  const own = partOf(file)
  if (!own) return false
  if (!name.endsWith('.ts')) {
    const packages = isPure(file) ? PURE_PACKAGES : own.packages
    return packages?.some((it) => isIn(name, it)) ?? true
  }
  if (isPure(file) && !isPure(name)) return false
  const other = partOf(name)
  if (!other) return false
  if (other.part === own.part) return true
  if (other.part === 'shared') return own.isAlone !== true
  return own.may.includes(other.part) && isVisible(file, name)
}

/** Within a feature everything is visible; of another feature only its public files. */
function isVisible(file: string, name: string): boolean {
  const feature = featureOf(name)
  if (name.startsWith('../') || feature === '' || feature === featureOf(file)) return true
  if (feature === 'shared' || isIn(name, 'billing/rating')) return true
  return publicFiles[feature]?.includes(name.slice(feature.length + 1)) ?? false
}

function featureOf(file: string): string {
  return file.includes('/') ? (file.split('/', 1)[0] ?? '') : ''
}

/** The routes and commands of a feature are a part wherever they are in it: billing/invoices/routes/… is billing/routes. */
function partOf(file: string): Part | undefined {
  const edge = /^([\w-]+)\/(?:[\w-]+\/)*(routes|commands)\//.exec(file)
  if (edge) return parts.find(({ part }) => part === `${edge[1]}/${edge[2]}`)
  const holding = parts.filter(({ part }) => isIn(file, part))
  return holding.toSorted((one, other) => other.part.length - one.part.length)[0]
}

function isPure(file: string): boolean {
  return !notPure.includes(file) && pure.some((it) => isIn(file, it))
}

function isIn(file: string, part: string): boolean {
  return file === part || file.startsWith(`${part}/`)
}

/** Groups of names that lead to each other. */
function circlesIn(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const circles: string[][] = []
  const finished = new Set<string>()
  function follow(name: string, way: readonly string[]): void {
    const met = way.indexOf(name)
    if (met >= 0) circles.push(way.slice(met))
    if (met >= 0 || finished.has(name)) return
    for (const next of graph.get(name) ?? []) follow(next, [...way, name])
    finished.add(name)
  }
  for (const name of graph.keys()) follow(name, [])
  return circles
}

/** The files that each file imports, type imports included. */
function filesImported(files: ReadonlyMap<string, string>): Map<string, readonly string[]> {
  return new Map(
    [...files].map(([file, text]) => [
      file,
      resolvedImports(file, text, IMPORTS).filter((name) => name.endsWith('.ts')),
    ]),
  )
}

/** The parts that each part imports. */
function partsImported(files: ReadonlyMap<string, string>): Map<string, readonly string[]> {
  const graph = new Map<string, Set<string>>()
  for (const [file, names] of filesImported(files)) {
    const own = partOf(file)?.part ?? file
    const others = names.map((name) => partOf(name)?.part ?? name).filter((it) => it !== own)
    graph.set(own, new Set([...(graph.get(own) ?? []), ...others]))
  }
  return new Map([...graph].map(([part, others]) => [part, [...others]]))
}

/** Declarations only: a file may export what it imports. */
const EXPORTED = /^export (?:async )?(?:const|let|function\*?|class|type|interface) (\w+)/gm

/** Names that several files declare and export. */
function namesExportedTwice(files: ReadonlyMap<string, string>): string[] {
  const filesOf = new Map<string, string[]>()
  for (const [file, text] of files) {
    for (const [, name = ''] of text.matchAll(EXPORTED)) filesOf.set(name, [...(filesOf.get(name) ?? []), file])
  }
  return [...filesOf]
    .filter(([, exporting]) => exporting.length > 1)
    .map(([name, exporting]) => `${name}: ${exporting.join(', ')}`)
}

const LOADED = [/^(?:import|export)\s(?!type\b)[^'"]*?\bfrom\s*['"]([^'"]+)['"]/gm, /^import\s*['"]([^'"]+)['"]/gm]

/** Everything that is loaded with a file: packages and other files, without what is imported on demand. */
function loadedWith(first: string, files: ReadonlyMap<string, string>): ReadonlySet<string> {
  const loaded = new Set([first])
  for (const file of loaded) {
    for (const name of resolvedImports(file, files.get(file) ?? '', LOADED)) loaded.add(name)
  }
  return loaded
}

function sources(): Map<string, string> {
  const root = new URL('../src/', import.meta.url)
  const below = (folder: string): string[] =>
    readdirSync(new URL(folder, root), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts'))
      .map((file) => posix.join(folder, file))
  const files = [...below('.'), ...below(`${LOCAL_MODELS}/`).filter((file) => !isIn(file, `${LOCAL_MODELS}/test`))]
  return new Map(files.map((file) => [file, readFileSync(new URL(file, root), 'utf8')]))
}

describe('the parts of src/', () => {
  it('import only what they may, and do nothing that is reserved to other parts', () => {
    assert.deepEqual(breaksIn(sources()), [])
  })

  it('have no import cycle, not even for types', () => {
    assert.deepEqual(circlesIn(filesImported(sources())), [])
    assert.deepEqual(circlesIn(partsImported(sources())), [])
  })

  it('load with weir serve none of the packages that would make it a quarter slower or larger', () => {
    const onDemand = new Set([
      'gpt-tokenizer',
      'ioredis',
      'pdfkit',
      'node-llama-cpp',
      'onnxruntime-node',
      'sharp',
      'esbuild',
    ])
    const loaded = [...loadedWith('cli/serve/serve.ts', sources())]
    assert.ok(loaded.includes('pino'))
    assert.deepEqual(
      loaded.filter((name) => onDemand.has(name.split('/', 1)[0] ?? '')),
      [],
    )
  })

  it('load with the thread of the projector neither schemas nor the client of PostgreSQL, nor the queries of other features', () => {
    const loaded = loadedWith('ledger/projector-thread/worker.ts', sources())
    assert.ok(loaded.has('store/database-choice.ts'))
    assert.deepEqual(
      ['typebox', 'pg', 'store/open.ts'].filter((name) => loaded.has(name)),
      [],
    )
  })

  it('are all listed, and all of them are checked', () => {
    const files = [...sources().keys()]
    assert.deepEqual(
      files.filter((file) => !partOf(file)),
      [],
    )
    const found = new Set(files.map((file) => partOf(file)?.part))
    assert.deepEqual(
      parts.map(({ part }) => part).filter((part) => !found.has(part)),
      [],
    )
    assert.deepEqual(
      pure.filter((part) => !files.some((file) => isIn(file, part))),
      [],
    )
    const imports = importsOf(sources().get('compose.ts') ?? '')
    for (const name of ['./compose/open-parts.ts', './server/server.ts', 'node:tls'])
      assert.ok(imports.includes(name), name)
  })

  it('have no public file that no other feature uses', () => {
    const used = new Set(
      [...sources()].flatMap(([file, text]) =>
        resolvedImports(file, text).filter((name) => featureOf(name) !== featureOf(file)),
      ),
    )
    const unused = Object.entries(publicFiles).flatMap(([feature, names]) =>
      names.map((name) => `${feature}/${name}`).filter((name) => !used.has(name)),
    )
    assert.deepEqual(unused, [])
  })

  it('export no name twice', () => {
    assert.deepEqual(namesExportedTwice(sources()), [])
  })

  it(`leave at most ${LOOSE_MAX} loose files in src/`, () => {
    const loose = [...sources().keys()].filter((file) => !file.includes('/'))
    assert.ok(loose.length <= LOOSE_MAX, loose.join(', '))
  })
})

describe('the consoles', () => {
  it('run in browsers: they import packages for browsers, each other’s shared parts, and of the service only text', () => {
    const packages = new Set([
      'preact',
      'preact/hooks',
      'preact-iso/router',
      '@preact/signals',
      'uplot',
      'uplot/dist/uPlot.min.css',
      'idb-keyval',
      'marked',
      'lowlight',
    ])
    const folders = ['highlight.js/lib/languages/', '@primer/octicons/build/svg/']
    const texts = new Set([`src/${CODE_SAMPLES}`, 'src/shared/bytes-text.ts', 'src/shared/errors.ts'])
    const root = new URL('../console/', import.meta.url)
    const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((file) => /\.tsx?$/.test(file))
    assert.ok(files.length > 10)
    const wrong = files.flatMap((file) => {
      const [own] = file.split('/')
      return importsOf(readFileSync(new URL(file, root), 'utf8'))
        .map((name) => (name.startsWith('.') ? posix.join('console', posix.dirname(file), name) : name))
        .filter((name) => {
          const mayShare = ['shared', 'generated', 'styles', own].some((part) => name.startsWith(`console/${part}/`))
          const isPackage = packages.has(name) || folders.some((folder) => name.startsWith(folder))
          return !mayShare && !isPackage && !texts.has(name)
        })
        .map((name) => `${file} imports ${name}`)
    })
    assert.deepEqual(wrong, [])
  })
})

describe('the test of the parts', () => {
  const wrong: readonly [file: string, text: string, found: string][] = [
    // Pure code.
    ['shared/money/money.ts', "import { readFileSync } from 'node:fs'", 'imports node:fs'],
    ['shared/money/money.ts', "import { createServer } from 'node:http'", 'imports node:http'],
    ['shared/money/money.ts', "import { request } from 'undici'", 'imports undici'],
    ['shared/money/money.ts', "import { systemClock } from '../system-clock.ts'", 'imports shared/system-clock.ts'],
    ['shared/money/money.ts', 'const now = Date.now()', 'has a clock or chance of its own'],
    ['queue/lane.ts', 'const id = crypto.randomUUID()', 'has a clock or chance of its own'],
    ['queue/lane.ts', "import { memoryAdmission } from './memory.ts'", 'imports queue/memory.ts'],
    ['ledger/rows.ts', "import { openJournal } from './journal/journal.ts'", 'imports ledger/journal/journal.ts'],
    ['billing/rating/rating.ts', "import { DatabaseSync } from 'node:sqlite'", 'imports node:sqlite'],
    ['engines/dialects/openai.ts', "import { readFileSync } from 'node:fs'", 'imports node:fs'],
    ['inference/pipeline/settle.ts', "import { pino } from 'pino'", 'imports pino'],
    // Directions between features.
    ['shared/errors.ts', "import type { Model } from '../catalog/model.ts'", 'imports catalog/model.ts'],
    ['billing/rating/rating.ts', "import type { Model } from '../../catalog/model.ts'", 'imports catalog/model.ts'],
    ['queue/memory.ts', "import type { Model } from '../catalog/model.ts'", 'imports catalog/model.ts'],
    ['queue/memory.ts', "import { openLink } from '../cluster/redis/link.ts'", 'imports cluster/redis/link.ts'],
    ['catalog/catalog.ts', "import type { Config } from '../config.ts'", 'imports config.ts'],
    ['catalog/catalog.ts', "import type { Engine } from '../engines/engine.ts'", 'imports engines/engine.ts'],
    [
      'ledger/ledger.ts',
      "import type { Workspace } from '../workspaces/workspace.ts'",
      'imports workspaces/workspace.ts',
    ],
    [
      'workspaces/accounts.ts',
      "import type { UsageStore } from '../billing/usage/usage-store.ts'",
      'imports billing/usage/usage-store.ts',
    ],
    [
      'inference/pipeline/admit.ts',
      "import { memoryAdmission } from '../../queue/memory.ts'",
      'imports queue/memory.ts',
    ],
    ['server/exchange.ts', "import type { Job } from '../engines/job.ts'", 'imports engines/job.ts'],
    ['server/server.ts', "import { publicApi } from './api/public-api.ts'", 'imports server/api/public-api.ts'],
    ['cluster/redis/link.ts', "import '../../queue/redis/admission.ts'", 'imports queue/redis/admission.ts'],
    [
      'workspaces/rate-limits/rate-limit.ts',
      "const it = await import('../../queue/memory.ts')",
      'imports queue/memory.ts',
    ],
    // What is not public.
    ['billing/usage/usage-report.ts', "import '../../ledger/journal/journal.ts'", 'imports ledger/journal/journal.ts'],
    [
      'operate/telemetry/telemetry.ts',
      "import { chooseAddress } from '../../engines/balance.ts'",
      'imports engines/balance.ts',
    ],
    ['engines/upstream.ts', "import { openStore } from '../store/open.ts'", 'imports store/open.ts'],
    // The store.
    [
      'billing/usage/queries/usage.ts',
      "import { openSqlite } from '../../../store/sqlite/client.ts'",
      'imports store/sqlite/client.ts',
    ],
    [
      'store/sqlite/worker.ts',
      "import { usageQueries } from '../../billing/usage/queries/usage.ts'",
      'imports billing/usage/queries/usage.ts',
    ],
    ['store/sqlite/thread.ts', "import { request } from 'undici'", 'imports undici'],
    ['compose.ts', "import { openSqlite } from './store/sqlite/client.ts'", 'imports store/sqlite/client.ts'],
    ['cli/command.ts', "import { migrateSqlite } from '../store/sqlite/migrate.ts'", 'imports store/sqlite/migrate.ts'],
    // Engines.
    ['engines/http-client/client.ts', "import type { Job } from '../job.ts'", 'imports engines/job.ts'],
    ['engines/http-client/client.ts', "import { request } from 'undici'", 'imports undici'],
    ['engines/http-client/client.ts', "import { ApiError } from '../../shared/errors.ts'", 'imports shared/errors.ts'],
    [
      'inference/request/remote-image.ts',
      "import { openClient } from '../../engines/http-client/index.ts'",
      'imports engines/http-client/index.ts',
    ],
    ['engines/upstream.ts', "new Worker(new URL('../store/worker.ts', import.meta.url))", 'imports store/worker.ts'],
    ['engines/upstream.ts', 'const response = await fetch(url)', 'calls fetch'],
    ['engines/upstream.ts', 'await globalThis.fetch(url)', 'calls fetch'],
    ['server/files/s3.ts', "import { request } from 'node:https'", 'calls out without undici'],
    ['server/files/s3.ts', "import { connect as open, type Socket } from 'node:tls'", 'calls out without undici'],
    ['server/files/s3.ts', "import * as http from 'node:http2'", 'calls out without undici'],
    // Endpoints.
    ['inference/chat/job.ts', "import { schema } from '../audio/schema.ts'", 'imports inference/audio/schema.ts'],
    [
      'inference/completions/schema.ts',
      "import { schema } from '../chat/schema.ts'",
      'imports inference/chat/schema.ts',
    ],
    [
      'inference/request/parameters.ts',
      "import { schema } from '../chat/schema.ts'",
      'imports inference/chat/schema.ts',
    ],
    [
      'engines/dialects/openai.ts',
      "import { readUsage } from '../../inference/generation/generation-usage.ts'",
      'imports inference/generation/generation-usage.ts',
    ],
    // Routes and commands.
    ['catalog/routes/models.ts', "import { openStore } from '../../store/open.ts'", 'imports store/open.ts'],
    ['catalog/routes/models.ts', "import { startService } from '../../compose.ts'", 'imports compose.ts'],
    ['catalog/routes/models.ts', "const port = process.env['PORT']", 'reads the environment'],
    [
      'billing/invoices/routes/invoices.ts',
      "import { modelRoutes } from '../../../catalog/routes/models.ts'",
      'imports catalog/routes/models.ts',
    ],
    [
      'billing/invoices/invoices.ts',
      "import { schema } from './routes/invoice-schema.ts'",
      'imports billing/invoices/routes/invoice-schema.ts',
    ],
    [
      'billing/invoices/commands/invoice.ts',
      "import { listen } from '../../../server/server.ts'",
      'imports server/server.ts',
    ],
    [
      'catalog/routes/catalog.ts',
      "import { keys } from '../../workspaces/keys/commands/keys.ts'",
      'imports workspaces/keys/commands/keys.ts',
    ],
    ['cli/terminal/table.ts', "import { print } from '../command.ts'", 'imports cli/command.ts'],
    ['cli/terminal/view.ts', "import { readFileSync } from 'node:fs'", 'imports node:fs'],
    [
      'compose.ts',
      "import { keys } from './workspaces/keys/commands/keys.ts'",
      'imports workspaces/keys/commands/keys.ts',
    ],
    ['compose.ts', "import { dialects } from './engines/dialects/index.ts'", 'imports engines/dialects/index.ts'],
    ['server/docs/docs-page.ts', 'fetch(url)', 'calls fetch'],
    [CODE_SAMPLES, "import { errorTable } from '../../shared/errors.ts'", 'imports shared/errors.ts'],
    ['local-models/supervisor.ts', `import '../${LOCAL_MODELS}/host/host.ts'`, `imports ${LOCAL_MODELS}/host/host.ts`],
    ['local-models/supervisor.ts', `import '../${LOCAL_MODELS}/index.ts'`, `imports ${LOCAL_MODELS}/index.ts`],
    ['compose.ts', `import type { RuntimeName } from './${CONTRACT}'`, `imports ${CONTRACT}`],
    ['local-models/files/download.ts', "import '../supervisor.ts'", 'imports local-models/supervisor.ts'],
    [`${LOCAL_MODELS}/manifest/hub.ts`, "import '../../../src/engines/engine.ts'", 'imports ../src/engines/engine.ts'],
    [
      `${LOCAL_MODELS}/host/wire/chat.ts`,
      "import '../llama/chat-model.ts'",
      `imports ${LOCAL_MODELS}/host/llama/chat-model.ts`,
    ],
    [
      `${LOCAL_MODELS}/host/wire/chat.ts`,
      "import '../loaded-models.ts'",
      `imports ${LOCAL_MODELS}/host/loaded-models.ts`,
    ],
    [
      `${LOCAL_MODELS}/host/wire/audio.ts`,
      "import '../../../../src/shared/errors.ts'",
      'imports ../src/shared/errors.ts',
    ],
    [
      `${LOCAL_MODELS}/host/llama/runtime.ts`,
      "import '../onnx/runtime.ts'",
      `imports ${LOCAL_MODELS}/host/onnx/runtime.ts`,
    ],
    ['helpers/strings.ts', "import { x } from '../shared/money/money.ts'", 'imports shared/money/money.ts'],
  ]
  for (const [file, text, found] of wrong) {
    it(`fails where ${file} ${found}`, () => assert.deepEqual(breaksIn(new Map([[file, text]])), [`${file} ${found}`]))
  }

  it('finds names that are exported twice, but not names that a file passes on', () => {
    const files = new Map([
      ['queue/a.ts', 'export const one = 1\nexport interface Two {}\nexport async function three() {}'],
      ['queue/b.ts', "export { one } from './a.ts'\nconst two = 2\nexport type Two = 2"],
      ['queue/c.ts', 'export function* three() {}'],
    ])
    assert.deepEqual(namesExportedTwice(files), ['Two: queue/a.ts, queue/b.ts', 'three: queue/a.ts, queue/c.ts'])
  })

  it('finds cycles, through types too', () => {
    const files = new Map([
      ['queue/a.ts', "import type { B } from './b.ts'"],
      ['queue/b.ts', "import { c } from './c.ts'"],
      ['queue/c.ts', "import { d } from './d.ts'\nexport type { A } from './a.ts'"],
      ['queue/d.ts', ''],
    ])
    assert.deepEqual(circlesIn(filesImported(files)), [['queue/a.ts', 'queue/b.ts', 'queue/c.ts']])
  })

  it('finds cycles of parts without a cycle of files', () => {
    const files = new Map([
      ['queue/a.ts', "import type { B } from '../catalog/b.ts'"],
      ['catalog/b.ts', ''],
      ['catalog/c.ts', "import { d } from '../queue/d.ts'"],
      ['queue/d.ts', ''],
    ])
    assert.deepEqual(circlesIn(filesImported(files)), [])
    assert.deepEqual(circlesIn(partsImported(files)), [['queue', 'catalog']])
  })

  it('passes what is allowed', () => {
    const right: readonly [string, string][] = [
      ['shared/money/money.ts', "import { json } from '../html.ts'\nimport { hash } from 'node:crypto'"],
      ['store/database-choice.ts', "import { openSqlite } from './sqlite/client.ts'"],
      ['billing/usage/queries/usage.ts', "import type { Database } from '../../../store/database.ts'"],
      ['bookkeeping.ts', "import { openStore } from './store/open.ts'"],
      ['compose/open-parts.ts', "import { openBookkeeping } from '../bookkeeping.ts'"],
      [
        'compose.ts',
        "import { openParts } from './compose/open-parts.ts'\nimport { listen } from './server/server.ts'",
      ],
      ['cli/command.ts', "import { openStore } from '../store/open.ts'"],
      [
        'operate/doctor/commands/doctor.ts',
        "import { healthCheckOf } from '../../../engines/dialects/health-check.ts'",
      ],
      ['config.ts', 'const port = process.env.PORT'],
      ['inference/routes/chat.ts', 'await parts.fetch(url); fetchImage(url); agent.fetch(it)'],
    ]
    assert.deepEqual(breaksIn(new Map(right)), [])
  })
})
