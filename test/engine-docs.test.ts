import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
// @ts-expect-error a script without types
import { engineNotes } from '../scripts/engine-notes.mjs'
// @ts-expect-error a script without types
import { enginesPage } from '../scripts/engines.mjs'
import { engineKinds } from '../src/catalog/model.ts'

/** oxfmt aligns tables and breaks lines, so only words count. */
const wordsOf = (text: string): string[] => text.split(/\s+/).filter((word) => !/^:?-+:?$/.test(word))

describe('docs/engines.md', () => {
  it('is what node scripts/engines.mjs writes', async () => {
    const page = readFileSync(new URL('../docs/engines.md', import.meta.url), 'utf8')
    const written = await (enginesPage as () => Promise<string>)()
    assert.deepEqual(wordsOf(page), wordsOf(written), 'run node scripts/engines.mjs')
  })

  it('describes every kind, and no other', () => {
    assert.deepEqual(Object.keys(engineNotes as object), [...engineKinds])
  })
})
