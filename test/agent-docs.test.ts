import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
// @ts-expect-error a script without types
import { agents, agentsSection } from '../scripts/agents.mjs'

/** oxfmt aligns tables and breaks lines, so only words count. */
const wordsOf = (text: string): string[] => text.split(/\s+/).filter((word) => !/^:?-+:?$/.test(word))
const read = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8')

describe('the table of coding agents in docs/clients.md', () => {
  it('has the results of the last recorded run of npm run test:agents', () => {
    const page = read('../docs/clients.md')
    const section = page.slice(page.indexOf('## Coding agents'))
    assert.deepEqual(wordsOf(section), wordsOf((agentsSection as () => string)()), 'run npm run clients')
  })

  it('names the versions that npm run install:agents installs', () => {
    for (const { file, version } of Object.values(agents as Record<string, { file: string; version: string }>)) {
      const deeds = JSON.parse(read(`fixtures/agents/deeds/${file}.json`)) as { version: string }
      assert.equal(deeds.version, version, `${file}: run WEIR_KEEP_REQUESTS=1 npm run test:agents`)
    }
  })
})
