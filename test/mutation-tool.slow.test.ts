import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
// @ts-expect-error: a script without types
import { mutantsOf as untyped } from '../scripts/mutants.mjs'

const mutantsOf = untyped as (
  paths: string[],
  seed: string,
  directory: string,
) => { mutants: { start: number; after: string }[]; close: () => void }

function changesOf(t: TestContext, source: string): string[] {
  const directory = mkdtempSync(join(tmpdir(), 'weir-mutants-'))
  t.after(() => rmSync(directory, { recursive: true }))
  writeFileSync(join(directory, 'tsconfig.json'), '{ "compilerOptions": { "noLib": true }, "files": ["sample.ts"] }')
  writeFileSync(join(directory, 'sample.ts'), source)
  const { mutants, close } = mutantsOf(['sample.ts'], '1', directory)
  close()
  return mutants.sort((one, other) => one.start - other.start).map(({ after }) => after)
}

describe('the mutants of scripts/mutate.mjs', () => {
  it('change the value that is used where there is no other', (t) => {
    const used = ["environment['PORT'] ?? 0", 'counts[bucket] ?? 0', 'while (at < end) bytes[at] ?? 0']
    for (const source of used) assert.ok(changesOf(t, source).includes(source.replace('?? 0', '?? 1')))
  })

  it('leave a value alone that only satisfies the type checker', (t) => {
    assert.deepEqual(changesOf(t, "const [name = ''] = names"), [])
    const unused = [
      'character.codePointAt(0) ?? 0',
      "text.split(';', 1)[0] ?? 0",
      'for (let at = 0; at < bytes.length; at++) bytes[at] ?? 0',
    ]
    for (const source of unused)
      assert.deepEqual(
        changesOf(t, source).filter((it) => it.endsWith('?? 1')),
        [],
      )
  })

  it('leave the order alone where it makes no difference', (t) => {
    assert.deepEqual(changesOf(t, 'export const product = Math.imul(one, other)'), [])
    assert.deepEqual(changesOf(t, 'export const less = Math.sub(one, other)'), [
      'export const less = Math.sub(other, one)',
    ])
  })

  it('swap what waits and what stands beside it, and nothing else', (t) => {
    const body = changesOf(t, 'async function run() { await store(); send(); count() }')
    assert.ok(body.includes('async function run() { send(); await store(); count() }'))
    assert.ok(!body.includes('async function run() { await store(); count(); send() }'))
  })

  it('leave the cause of an error alone, and examples', (t) => {
    assert.deepEqual(changesOf(t, 'throw new Error(message, { cause, code })'), [
      ';',
      'throw new Error(message, { cause, })',
    ])
    assert.deepEqual(changesOf(t, 'const schema = spreadSchema({ p50: 1 })'), [])
  })

  it('change a number to each other one once', (t) => {
    assert.deepEqual(changesOf(t, 'const none = 0'), ['const none = 1'])
    assert.deepEqual(changesOf(t, 'const one = 1'), ['const one = 2', 'const one = 0'])
  })
})
