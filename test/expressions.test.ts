import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { expressionsIn, growthOf, type Expression } from './support/expressions.ts'
import { isLongRun } from './support/long-run.ts'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
/** Expressions that were checked before, one on a line. The result depends on nothing else, and takes a minute for all. */
const CHECKED = join(root, 'test', 'fixtures', 'checked-expressions.txt')
const textOf = ({ source, flags }: Expression): string => `/${source}/${flags}`

describe('the regular expressions of src/ and of the host of local models', () => {
  const { expressions, computed } = expressionsIn(root, ['src', 'packages/local-models/host'])

  it('take time that grows no faster than their text', () => {
    assert.ok(expressions.length > 100, 'found almost none')
    const checked = new Set(readFileSync(CHECKED, 'utf8').split('\n'))
    // test:slow ignores the list and checks every expression again.
    const isKnown = (it: Expression): boolean => !isLongRun && checked.has(textOf(it))
    const growths = expressions.filter((it) => !isKnown(it)).map((it) => ({ it, growth: growthOf(it) }))
    const slow = growths.filter(({ growth }) => growth !== undefined)
    assert.deepEqual(
      slow.map(({ it, growth }) => `${it.place} ${textOf(it)} ${growth}`),
      [],
    )
  })

  it('are listed once they are checked, and no longer than they are used', () => {
    const used = [...new Set(expressions.map(textOf))].toSorted()
    assert.deepEqual(readFileSync(CHECKED, 'utf8').trimEnd().split('\n'), used, `write this list to ${CHECKED}`)
  })

  it('are literals in the source, so that they can be checked', () => {
    // It compiles the patterns of schemas, which are among those above.
    assert.deepEqual(
      computed.map((place) => place.split(':')[0]),
      ['src/shared/json/schema-check.ts'],
    )
  })
})

describe('the check of regular expressions', () => {
  const project = mkdtempSync(join(tmpdir(), 'weir-expressions-'))
  after(() => rmSync(project, { recursive: true }))

  it('finds every expression of a program', () => {
    const lines = [
      'const text = `${"a".replace(/a+/g, "")}`',
      'const schema = { pattern: "^b$" }',
      'const other = { pattern: FOUND.source }',
      'const made = new RegExp(text)',
      'const called = RegExp("c" + text, "i")',
      'const found = text.match("d")',
      'const kept = text.search(FOUND)',
      'const computed = { pattern: text + "e" }',
      '// /f+/',
      'const division = text / text / text',
      'const quoted = "/g+/"',
    ]
    writeFileSync(join(project, 'sample.ts'), lines.join('\n'))
    const { expressions, computed } = expressionsIn(project, [''])
    assert.deepEqual(expressions, [
      { place: 'sample.ts:1', source: 'a+', flags: 'g' },
      { place: 'sample.ts:2', source: '^b$', flags: 'u' },
    ])
    assert.deepEqual(computed, ['sample.ts:4', 'sample.ts:5', 'sample.ts:6', 'sample.ts:8'])
  })

  // Each of the last three takes it several seconds.
  const slow = [
    /_*$/,
    /(a|a)*b/,
    ...(isLongRun ? [/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i, /\n\s+at \S/, /\[json\.exception[^\]]*\]\s*/g] : []),
  ]
  for (const { source, flags } of slow) {
    it(`refuses /${source.slice(0, 40)}/`, () => assert.notEqual(growthOf({ source, flags }), undefined))
  }
})
