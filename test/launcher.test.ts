import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { describe, it } from 'node:test'

describe('what bin/weir.mjs starts', () => {
  const bootstrap = new URL('../scripts/bootstrap.mjs', import.meta.url).href

  /** The value that the process of a service finds. glibc reads it before Node runs. */
  function arenas(environment: NodeJS.ProcessEnv): string {
    const script = `import('${bootstrap}').then((it) => it.runAndExit(['-p', 'process.env.MALLOC_ARENA_MAX']))`
    return execFileSync(process.execPath, ['-e', script], { env: { PATH: process.env['PATH'], ...environment } })
      .toString()
      .trim()
  }

  it('has one arena of malloc', () => {
    assert.equal(arenas({}), '1')
  })

  it("keeps the operator's own number of arenas", () => {
    assert.equal(arenas({ MALLOC_ARENA_MAX: '4' }), '4')
  })
})
