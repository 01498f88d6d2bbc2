import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
// @ts-expect-error a script without types
import { configNotes, variables } from '../scripts/config-notes.mjs'
// @ts-expect-error a script without types
import { documentsWithFigures, withResults } from '../scripts/figures.mjs'
// @ts-expect-error a script without types
import { clientTypes, keysOf, limitLists, referencePages, webhookGuide } from '../scripts/references.mjs'
import { configSchema } from '../src/config/config-file.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
/** Without what the formatter adds to align a table. */
const plain = (text: string): string => text.replaceAll(/-{2,}/g, '-').replaceAll(/\s+/g, ' ').trim()

describe('the references', () => {
  it('are what npm run references writes', async () => {
    const pages = (await referencePages()) as Record<string, string>
    assert.deepEqual(globSync('*.md', { cwd: join(root, 'docs/reference') }).toSorted(), Object.keys(pages).toSorted())
    for (const [name, text] of Object.entries(pages)) {
      const file = readFileSync(join(root, 'docs/reference', name), 'utf8')
      assert.ok(plain(file) === plain(text), `docs/reference/${name} is out of date: npm run references`)
    }
  })

  it('include the events in the guide on webhooks', async () => {
    const file = readFileSync(join(root, 'docs/guides/webhooks.md'), 'utf8')
    assert.ok(plain(file) === plain((await webhookGuide()) as string), 'npm run references')
    assert.ok(file.includes('`key.revoked`'))
  })

  it('have every limit, default and choice of the APIs and of weir.yaml', async () => {
    for (const [name, text] of Object.entries((await limitLists()) as Record<string, string>)) {
      const file = readFileSync(join(root, 'docs/reference/limits', name), 'utf8')
      assert.deepEqual(file.split('\n'), text.split('\n'), `docs/reference/limits/${name}: npm run references`)
    }
  })

  it('show figures as docs/figures.json has them', () => {
    const documents = (documentsWithFigures as () => Record<string, string>)()
    assert.ok('README.md' in documents && 'docs/figures.md' in documents)
    for (const [name, text] of Object.entries(documents)) {
      const file = readFileSync(join(root, name), 'utf8')
      assert.ok(plain(file) === plain(text), `the figures of ${name} are out of date: npm run references`)
    }
  })

  it('take a benchmark’s figures in the place of older ones, with the run that measured them', () => {
    const older = { run: 'held 2026-01-01', unit: 'KB', digits: 0, values: [20] }
    const before = {
      runs: { 'held 2026-01-01': { date: '2026-01-01' }, 'start 2026-01-01': { date: '2026-01-01' } },
      figures: { 'held.each': older, 'start.few': { ...older, run: 'start 2026-01-01' } },
    }
    const run = { date: '2026-02-02', commit: 'c', machine: 'm', how: 'h' }
    const results = '["each",{"unit":"KB","digits":0,"values":[18,19]}]\n'
    assert.deepEqual(withResults(before, 'held', run, results), {
      runs: { 'start 2026-01-01': { date: '2026-01-01' }, 'held 2026-02-02': run },
      figures: {
        'held.each': { run: 'held 2026-02-02', unit: 'KB', digits: 0, values: [18, 19] },
        'start.few': before.figures['start.few'],
      },
    })
  })

  it('include the types of the console’s clients, so that a changed field breaks its build', async () => {
    const bare = (text: string): string => text.replaceAll(/['"();|]|\s+/g, '')
    for (const [name, text] of Object.entries((await clientTypes()) as Record<string, string>)) {
      const file = readFileSync(join(root, 'console/generated', name), 'utf8')
      assert.ok(bare(file) === bare(text), `console/generated/${name} is out of date: npm run references`)
    }
  })

  it('describe every key of weir.yaml, and no other', () => {
    const keys = [...keysOf(configSchema, '')].map(([key]) => key as string)
    assert.deepEqual(Object.keys(configNotes).toSorted(), keys.toSorted())
  })

  it('describe every variable that Weir reads, and no other', () => {
    const config = readFileSync(join(root, 'src/config.ts'), 'utf8')
    const read = new Set([...config.matchAll(/environment\['(WEIR_\w+)'\]/g)].map(([, name = '']) => name))
    assert.deepEqual(Object.keys(variables).toSorted(), [...read].toSorted())
  })
})
