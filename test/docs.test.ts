import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
// @ts-expect-error a script without types
import { keysOf } from '../scripts/references.mjs'
import { engineKinds } from '../src/catalog/model.ts'
import type { Command } from '../src/cli/command.ts'
import { configSchema } from '../src/config/config-file.ts'
import { metricTable } from '../src/operate/telemetry/metric-table.ts'
import { adminRoutes, type AdminRouteParts } from '../src/server/api/admin-routes.ts'
import { publicDescription } from '../src/server/api/public-description.ts'
import { publicRoutes, type PublicRouteParts } from '../src/server/api/public-routes.ts'
import { eventTable } from '../src/alerts/event-table.ts'
import { errorTable } from '../src/shared/errors.ts'
import * as documented from './support/documented-names.ts'
import type { DocumentedCommand, DocumentedName } from './support/documented-names.ts'

/** The documentation names files, links, commands, settings, metrics, routes, messages and figures. Each of them exists. */
const root = fileURLToPath(new URL('..', import.meta.url))
const textOf = (file: string): string => readFileSync(join(root, file), 'utf8')
const { version, scripts } = JSON.parse(textOf('package.json')) as { version: string; scripts: Record<string, string> }

const documents = ['*.md', '{docs,examples,packages,src,test,.github}/**/*.md'].flatMap((it) =>
  globSync(it, { cwd: root, exclude: ['**/node_modules/**'] }),
)
/** Decisions and the changelog are history: they name what there was. Their files, links and commands exist nevertheless. */
const isHistory = (file: string): boolean => file.startsWith('docs/decisions/') || file === 'CHANGELOG.md'

const FENCE = /^```.*?^```$/gms

const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
})
  .trimEnd()
  .split('\n')
const folders = new Set(files.flatMap((file) => file.split('/').map((_, index, all) => all.slice(0, index).join('/'))))

const endsLike = (all: Iterable<string>, name: string): boolean =>
  [...all].some((it) => it === name || it.endsWith(`/${name}`))

const sources = files.filter(
  (file) =>
    /\.(?:[cm]?[jt]sx?|json|ya?ml|sql|lua|py|sh|service)$|Dockerfile/.test(file) &&
    !/^docs\/|^test\/docs|^package-lock/.test(file) &&
    existsSync(join(root, file)),
)
/** Everything that is run, as one text. */
const code = sources
  .filter((file) => !file.startsWith('test/'))
  .map(textOf)
  .join('\n')
const words = new Set(code.match(/\w+/g))
const variables = new Set(sources.flatMap((file) => textOf(file).match(/\bWEIR_[A-Z_]+\b/g) ?? []))
/** Without the joints of texts that are broken over several lines. */
const joined = code.replaceAll(/['`]\s*\+\s*['`]/g, '').replaceAll(/\s+/g, ' ')

const settings = [...keysOf(configSchema, '')].map(([key]) => `.${(key as string).replaceAll('[]', '')}.`)
const sections = new Set(settings.flatMap((key) => key.split('.').slice(1, -2)))

const routes = [
  ...publicRoutes({ audio: {} } as PublicRouteParts).map(({ method, path }) => `${method} ${path}`),
  ...adminRoutes({} as AdminRouteParts).map(({ method, path }) => `${method} ${path}`),
]
/** What is not in the repository: files that its users make, and what belongs to inference servers, agents and databases. */
const ELSEWHERE = new Set([
  'examples/.env',
  'spool',
  'weights',
  'node',
  'data',
  'v1',
  'GET /props',
  'GET /get_server_info',
  '--jinja',
  'apply_patch',
  'shared_buffers',
  'default_pool_size',
  'server_login_retry',
  'libcublasLt',
])

function isRoute(name: string): boolean {
  const [method, path] = name.includes(' ') ? (name.split(' ') as [string, string]) : ['', name]
  const asked = path.replace(/[.]$/, '').replaceAll(/\{(\w+)\+?\}/g, '{$1}')
  return routes.some((route) => {
    const [known = '', pattern = ''] = route.split(' ')
    if (method !== '' && method !== known) return false
    const parts = pattern
      .split('/')
      .map((part) => (/^\{.*\+\}$/.test(part) ? '.+' : part.startsWith('{') ? '[^/]+' : RegExp.escape(part)))
    return [asked, `${publicDescription.base}${asked}`].some((it) => new RegExp(`^${parts.join('/')}$`).test(it))
  })
}

function isMetric(name: string): boolean {
  return name in metricTable || name.replace(/_(?:bucket|sum|count)$/, '') in metricTable
}

/** The types of events are written like settings. */
function isSetting(name: string): boolean {
  if (name in eventTable) return true
  const plain = name.replaceAll('[]', '')
  return !sections.has(plain.split('.')[0] ?? '') || settings.some((key) => key.includes(`.${plain}.`))
}

/** The commands by name. main.ts runs when it is imported, so this reads where it would import them from. */
const commands = new Map<string, string>()
async function loadCommands(): Promise<void> {
  const main = textOf('src/main.ts')
  const common = /COMMON_HELP = `(.*?)`/s.exec(main)?.[1] ?? ''
  for (const [, name = '', path = '', exported = ''] of main.matchAll(
    /^ {2}(\w+): async .*import\('\.\/(.+?)'\)\)\.(\w+)/gm,
  )) {
    const { [exported]: command } = (await import(`../src/${path}`)) as Record<string, Command>
    commands.set(name, `${command?.help}\n${common}`)
  }
}

/** A word that does not belong to a command is what it is about: weir invoice acme. */
function isCommand({ words: [name = '', action], flags }: DocumentedCommand): boolean {
  const help = commands.get(name)
  if (help === undefined) return false
  const actions = new Set([...help.matchAll(new RegExp(`^weir ${name} ([a-z]+)\\b`, 'gm'))].map(([, it]) => it))
  const takesAnything = new RegExp(`^weir ${name}(?: \\[?-| \\[?[A-Z]|$)`, 'm').test(help)
  const isAction = action === undefined || actions.has(action) || takesAnything
  return isAction && flags.every((flag) => new RegExp(`(?<![\\w-])${flag}\\b`).test(help))
}

/** Words in capitals stand for what differs. */
function isMessage(text: string): boolean {
  return text.split(/\b[A-Z]{3,}\b/).every((part) => joined.includes(part.trim()))
}

interface Kind {
  readonly find: (text: string) => readonly DocumentedName[]
  readonly exists: (name: DocumentedName, file: string) => boolean
  readonly isOfHistory?: boolean
}

const kinds: Readonly<Record<string, Kind>> = {
  path: {
    find: documented.pathsIn,
    exists: ({ name }) => existsSync(join(root, name)),
    isOfHistory: true,
  },
  'file of the source': {
    find: documented.sourceFilesIn,
    exists: ({ name }) => endsLike(files, name),
    isOfHistory: true,
  },
  folder: { find: documented.foldersIn, exists: ({ name }) => endsLike(folders, name), isOfHistory: true },
  'npm script': { find: documented.scriptsIn, exists: ({ name }) => name in scripts, isOfHistory: true },
  benchmark: {
    find: documented.benchesIn,
    exists: ({ name }) => new RegExp(`^ {2}'?${name}'?: '`, 'm').test(textOf('scripts/bench.mjs')),
    isOfHistory: true,
  },
  'weir command': {
    find: documented.weirCommandsIn,
    exists: (name) => isCommand(name as DocumentedCommand),
    isOfHistory: true,
  },
  flag: { find: documented.flagsIn, exists: ({ name }) => code.includes(name) },
  setting: { find: documented.settingsIn, exists: ({ name }) => isSetting(name) },
  function: { find: documented.functionsIn, exists: ({ name }) => words.has(name) },
  identifier: { find: documented.identifiersIn, exists: ({ name }) => words.has(name) },
  'environment variable': { find: documented.variablesIn, exists: ({ name }) => variables.has(name) },
  metric: { find: documented.metricsIn, exists: ({ name }) => isMetric(name) },
  'error code': {
    find: documented.errorCodesIn,
    // That page also has the codes of inference servers.
    exists: ({ name }, file) => name in errorTable || file === 'docs/engines.md',
  },
  route: { find: documented.routesIn, exists: ({ name }) => isRoute(name) },
  message: { find: documented.messagesIn, exists: ({ name }) => isMessage(name) },
}

/** What a document names that does not exist, as file:line. */
function missing(file: string, text: string): string[] {
  const found = Object.entries(kinds).flatMap(([kind, { find, exists, isOfHistory }]) => {
    if (isHistory(file) && !isOfHistory) return []
    return find(text)
      .filter((it) => !ELSEWHERE.has(it.name) && !exists(it, file))
      .map(({ line, name }) => `${file}:${line} names the ${kind} "${name}", which does not exist`)
  })
  return [...found, ...missingLinks(file, text)]
}

function missingLinks(file: string, text: string): string[] {
  return documented.proseIn(text).flatMap(({ line, name: prose }) => {
    const links = [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map((match) => match[1] ?? '')
    return links
      .filter((link) => !isLink(file, link))
      .map((link) => `${file}:${line} links to ${link}, which does not exist`)
  })
}

function isLink(file: string, link: string): boolean {
  if (/^https?:/.test(link)) return true
  const [path = '', anchor] = link.split('#')
  const target = path === '' ? file : join(dirname(file), path)
  return existsSync(join(root, target)) && (anchor === undefined || anchorsOf(textOf(target)).includes(anchor))
}

/** The names under which GitHub links to headings. */
function anchorsOf(text: string): string[] {
  const headings = text.replaceAll(FENCE, '').matchAll(/^#+ (.+)$/gm)
  return [...headings].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  )
}

const DECISIONS = documents.filter((file) => file.startsWith('docs/decisions/'))
const STATUS_LINE = /^# .+\n\nStatus: (Accepted\.|Replaced by \[[^\]]+\]\([^)]+\))/

/** A decision has its status below its title. Where it was replaced, both statuses link to each other. */
function statusMistakes(file: string, text: string): string[] {
  if (!STATUS_LINE.test(text)) return ['no status']
  const linked = (pattern: RegExp): string[] => [...statusOf(text).matchAll(pattern)].map((match) => match[1] ?? '')
  const replacements = linked(/eplaced by \[[^\]]+\]\(([^)]+)\)/g)
  const replaced = linked(/Replaces [^[]*\[[^\]]+\]\(([^)]+)\)/g)
  return [...replacements, ...replaced].filter(
    (link) => !statusOf(textOf(join(dirname(file), link))).includes(`](${basename(file)})`),
  )
}

function statusOf(decision: string): string {
  return decision.split('\n\n')[1] ?? ''
}

describe('the documentation', () => {
  before(loadCommands)

  it('is all checked', () => {
    for (const file of ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'docs/billing.md', 'examples/README.md']) {
      assert.ok(documents.includes(file), file)
    }
  })

  for (const file of documents) {
    it(`${file} names what exists`, () => assert.deepEqual(missing(file, textOf(file)), []))
  }

  it('draws the tree as it is', () => {
    const tree = documented.treeIn(textOf('docs/ARCHITECTURE.md'))
    assert.ok(tree.length > 40)
    assert.deepEqual(
      tree.filter(({ name }) => !existsSync(join(root, name))),
      [],
      'docs/ARCHITECTURE.md',
    )
  })

  it('has no measured figure outside of the tables that are written from docs/figures.json', () => {
    const pages = documents.filter((file) => file === 'README.md' || /^docs\/(?:guides\/)?[\w-]+\.md$/.test(file))
    // Written by scripts/clients.mjs and scripts/engines.mjs; the scores of mutants have their dates beside them.
    const others = new Set(['docs/clients.md', 'docs/engines.md', 'docs/mutation-scores.md'])
    const found = pages
      .filter((file) => !others.has(file))
      .flatMap((file) => documented.measuredProseIn(textOf(file)).map(({ line, name }) => `${file}:${line} ${name}`))
    assert.deepEqual(found, [])
  })

  it('has a status in every decision, and both link where one replaced the other', () => {
    assert.ok(DECISIONS.length > 20)
    for (const file of DECISIONS) assert.deepEqual(statusMistakes(file, textOf(file)), [], file)
  })

  it('begins with a README of at most 130 lines', () => {
    assert.ok(textOf('README.md').trimEnd().split('\n').length <= 130)
  })

  it('of this version is in the changelog, and the lock file agrees', () => {
    assert.equal(/^## (\d\S+)/m.exec(textOf('CHANGELOG.md'))?.[1], version)
    const lock = JSON.parse(textOf('package-lock.json')) as { version: string; packages: { '': { version: string } } }
    assert.deepEqual([lock.version, lock.packages[''].version], [version, version])
  })
})

describe('the test of the documentation', () => {
  before(loadCommands)

  const wrong: Readonly<Record<string, string>> = {
    path: '`src/none.ts`',
    'path in a command': '`npm test -- test/none.test.ts`',
    'path with a placeholder': '`test/none/*.ts`',
    'file of the source': '`queue/none.ts`',
    folder: '`queue/none/`',
    'npm script': '`npm run none`',
    benchmark: '`npm run bench -- none`',
    'weir command': '`weir none`',
    'weir subcommand': '`weir keys none`',
    'flag of a weir command': '`weir keys create --none`',
    'weir command in a block': '```\nnpx weir nothing\n```',
    flag: '`--none-such`',
    setting: '`server.none`',
    function: '`noneSuch`',
    identifier: '`none_such`',
    'environment variable': '`WEIR_NONE`',
    metric: '`weir_none_total`',
    'error code': '400 `none`',
    'route with a method': '`GET /admin/v1/none`',
    'method of a route': '`DELETE /admin/v1/replicas`',
    'route in a block': '```\ncurl http://127.0.0.1:8080/api/v1/none\n```',
    message: 'The log says "the database is on holiday".',
    link: '[a](none.md)',
    anchor: '[a](README.md#none)',
  }
  for (const [kind, text] of Object.entries(wrong)) {
    it(`finds a wrong ${kind}, with its line`, () => {
      const found = missing('SECURITY.md', `# Title\n\n${text}\n`)
      assert.ok(found.length > 0)
      for (const it of found) assert.match(it, /^SECURITY\.md:[34] .*which does not exist$/)
    })
  }

  it('takes what exists', () => {
    const right =
      '`src/inference/<name>/job.ts` `queue/lane.ts` `npm run spec` `npm run bench -- admission-redis` `weir.yaml`\n' +
      '`weir keys create --workspace acme` `weir usage cache` `server.drain_ms` `limits.token_budget` `weir_queue_depth`\n' +
      '`none.ts` (removed) `GET /models` `PUT /admin/v1/queues/{lane}` `WEIR_PORT` 429 `queue_full` `weir_queue_wait_seconds_bucket`\n' +
      '[a](README.md#figures) [b](https://example.com/none) the log says "engine is down"\n'
    assert.deepEqual(missing('SECURITY.md', right), [])
  })

  it('finds a folder that the tree does not have', () => {
    const drawn = '```\nsrc/\n  main.ts   the command line\n  queue/    lanes\n    none/ redis/   both\n```\n'
    const names = documented.treeIn(drawn).map(({ name }) => name)
    assert.deepEqual(names, ['src', 'src/main.ts', 'src/queue', 'src/queue/none', 'src/queue/redis'])
  })

  it('finds a figure in prose, and none in a table that is written', () => {
    const measured =
      'Text.\n\nMeasured on a\nmachine: 12 ms.\n\nA chat costs 2.1 × as much.\n\nA body of 20 MiB at most.\n'
    assert.deepEqual(documented.measuredProseIn(measured), [
      { line: 3, name: '12 ms' },
      { line: 6, name: '1 ×' },
    ])
    const written = '<!-- figures: a -->\n\nMeasured: 12 ms\n\n<!-- /figures -->\n'
    assert.deepEqual(documented.measuredProseIn(written), [])
  })

  it('finds a decision without a status, and one that is linked from one side only', () => {
    const decision = 'docs/decisions/2026-11-15-invoices.md'
    assert.deepEqual(statusMistakes(decision, '# Title\n\n**Decision.** None.\n'), ['no status'])
    for (const status of ['Replaced by', 'Accepted. Replaces a part of']) {
      assert.deepEqual(statusMistakes(decision, `# Title\n\nStatus: ${status} [it](2026-11-16-redis.md).\n`), [
        '2026-11-16-redis.md',
      ])
    }
  })
})

describe('the files for the hosting platform', () => {
  it('are valid YAML, and CI runs what .ci/run runs', () => {
    for (const file of globSync('.github/**/*.yml', { cwd: root })) assert.ok(parse(textOf(file)), file)
    const ci = parse(textOf('.github/workflows/ci.yml')) as { jobs: { test: { steps: { run?: string }[] } } }
    assert.equal(ci.jobs.test.steps.at(-1)?.run, 'bash .ci/run')
  })

  it('offer every kind of engine in the compatibility report', () => {
    const form = parse(textOf('.github/ISSUE_TEMPLATE/engine.yml')) as {
      body: { id?: string; attributes: { options?: string[] } }[]
    }
    const offered = form.body.find(({ id }) => id === 'kind')?.attributes.options
    assert.deepEqual(offered, [...engineKinds.filter((kind) => kind !== 'embedded'), 'none fits'])
  })
})
