import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
// @ts-expect-error a script without types
import { configNotes, variables } from '../scripts/config-notes.mjs'
// @ts-expect-error a script without types
import { errorCures } from '../scripts/error-help.mjs'
// @ts-expect-error a script without types
import { clientTypes, keysOf, referencePages } from '../scripts/references.mjs'
import { configSchema } from '../src/config/config-file.ts'
import { errorTable } from '../src/shared/errors.ts'

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

  it('explain every error code, and no other', () => {
    assert.deepEqual(Object.keys(errorCures).toSorted(), Object.keys(errorTable).toSorted())
  })
})
