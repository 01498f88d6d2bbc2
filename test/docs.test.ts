import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { engineKinds } from '../src/catalog/model.ts'

/** The documentation names files, links, commands and versions. Each of them exists. */
const root = fileURLToPath(new URL('..', import.meta.url))
const textOf = (file: string): string => readFileSync(join(root, file), 'utf8')
const { version, scripts } = JSON.parse(textOf('package.json')) as { version: string; scripts: Record<string, string> }

const documents = ['*.md', '{docs,examples,packages,src,test,.github}/**/*.md'].flatMap((it) =>
  globSync(it, { cwd: root, exclude: ['**/node_modules/**'] }),
)

const FENCE = /^```.*?^```$/gms
const FOLDERS = ['src', 'test', 'docs', 'bench', 'scripts', 'examples', 'packages', 'bin', '.ci', '.github']

/** A path up to its first placeholder: src/inference/<name>/job.ts → src/inference. */
function knownPart(path: string): string {
  const segments = path.split('/')
  const unknown = segments.findIndex((segment) => /[<*…{]/.test(segment))
  return unknown < 0 ? path : segments.slice(0, unknown).join('/')
}

const files = globSync(`{${FOLDERS.join(',')}}/**/*.*`, { cwd: root, exclude: ['**/node_modules/**'] })
/** A file of code or a folder in a folder, wherever it begins: `lane.ts`, `queue/lane.ts`, `store/postgres/`. */
const PATH = /^[\w-]+(\/[\w.-]+)*(\.(ts|tsx|mjs|lua)|(?<=\/[\w.-]+)\/)$/
const PLACEHOLDER = 'NAME'

/** Paths that do not exist, unless the text marks them: `old.ts` (removed). */
function missingPaths(text: string): string[] {
  const spans = [...text.replaceAll(FENCE, '').matchAll(/`([^`\s]+)`(?! \(removed\))/g)].map((match) => match[1] ?? '')
  return spans.filter((span) => {
    if (FOLDERS.some((folder) => span.startsWith(`${folder}/`))) return !existsSync(join(root, knownPart(span)))
    if (!PATH.test(span) || span.startsWith(PLACEHOLDER)) return false
    return !files.some((file) =>
      span.endsWith('/') ? `/${file}`.includes(`/${span}`) : `/${file}`.endsWith(`/${span}`),
    )
  })
}

function missingLinks(file: string, text: string): string[] {
  const links = [...text.replaceAll(FENCE, '').matchAll(/\]\(([^)\s]+)\)/g)].map((match) => match[1] ?? '')
  return links.filter((link) => {
    if (/^https?:/.test(link)) return false
    const [path = '', anchor] = link.split('#')
    const target = path === '' ? file : join(dirname(file), path)
    if (!existsSync(join(root, target))) return true
    return anchor !== undefined && !anchorsOf(textOf(target)).includes(anchor)
  })
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

/** A decision has its status below its title, and a decision that replaced it links back. */
function statusMistakes(file: string, text: string): string[] {
  if (!STATUS_LINE.test(text)) return ['no status']
  const status = text.split('\n')[2] ?? ''
  const replacements = [...status.matchAll(/eplaced by \[[^\]]+\]\(([^)]+)\)/g)].map((match) => match[1] ?? '')
  return replacements.filter((link) => !textOf(join(dirname(file), link)).includes(`](${basename(file)})`))
}

/** Commands in code: `npm run NAME`, `npm run bench -- NAME`, `weir NAME`. */
function missingCommands(text: string): string[] {
  const code = [...text.matchAll(FENCE), ...text.replaceAll(FENCE, '').matchAll(/`[^`]+`/g)]
    .map(([it]) => it)
    .join('\n')
  const commands = code.matchAll(/\bnpm run bench -- (\w+)|\bnpm run ([\w:]+)|(?<![\w/.-])weir ([a-z]+)\b/g)
  const benches = textOf('scripts/bench.mjs')
  return [...commands].flatMap(([whole, bench, script, command]) => {
    const exists =
      (bench !== undefined && new RegExp(`^  ${bench}: '`, 'm').test(benches)) ||
      (script !== undefined && script in scripts) ||
      (command !== undefined && new RegExp(`^  ${command}: async`, 'm').test(textOf('src/main.ts')))
    return exists ? [] : [whole]
  })
}

describe('the documentation', () => {
  it('is all looked at', () => {
    for (const file of ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'docs/billing.md', 'examples/README.md']) {
      assert.ok(documents.includes(file), file)
    }
  })

  for (const file of documents) {
    it(`${file} names files, links and commands that exist`, () => {
      const text = textOf(file)
      assert.deepEqual(missingPaths(text), [], 'paths')
      assert.deepEqual(missingLinks(file, text), [], 'links')
      assert.deepEqual(missingCommands(text), [], 'commands')
    })
  }

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
  it('finds what does not exist', () => {
    assert.deepEqual(missingPaths('`src/none.ts` `src/inference/<name>/none.ts` `test/none/*.ts`'), [
      'src/none.ts',
      'test/none/*.ts',
    ])
    assert.deepEqual(
      missingPaths('`queue/lane.ts` `lane.ts` `queue/none.ts` `none.lua` `store/postgres/` `store/none/`'),
      ['queue/none.ts', 'none.lua', 'store/none/'],
    )
    assert.deepEqual(missingPaths('`src/none.ts` (removed) `none.ts` (removed) `v1/` `NAME.test.ts` `meta/llama`'), [])
    const links = '[a](README.md) [b](none.md) [c](README.md#figures) [d](README.md#none) [e](https://example.com/none)'
    assert.deepEqual(missingLinks('CHANGELOG.md', links), ['none.md', 'README.md#none'])
    const commands = '`npm run none` `npm run bench -- none` `weir none` weir none\n```\nnpx weir nothing\n```\n'
    assert.deepEqual(missingCommands(commands), ['weir nothing', 'npm run none', 'npm run bench -- none', 'weir none'])
    const decision = 'docs/decisions/2026-11-15-invoices.md'
    assert.deepEqual(statusMistakes(decision, '# Title\n\n**Decision.** None.\n'), ['no status'])
    assert.deepEqual(statusMistakes(decision, '# Title\n\nStatus: Replaced by [it](2026-11-16-redis.md).\n'), [
      '2026-11-16-redis.md',
    ])
    assert.deepEqual(missingCommands('`npm run spec` `npm run bench -- held` `npx weir keys create` `weir.yaml`'), [])
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
