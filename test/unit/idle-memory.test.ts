import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { describe, it, type TestContext } from 'node:test'
import { collectOnceIdle, HEAP_MAX_BYTES, IDLE_MS } from '../../src/commands/idle-memory.ts'

function stage(t: TestContext, heapBytes = 1) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const seen = { requests: 7, collections: 0 }
  const cancel = collectOnceIdle(() => seen.requests, { heapBytes: () => heapBytes, collect: () => seen.collections++ })
  return { seen, cancel, wait: () => t.mock.timers.tick(IDLE_MS) }
}

describe('the memory of a service that has started', () => {
  it('is collected once if nobody calls', (t) => {
    const { seen, wait } = stage(t)
    assert.equal(seen.collections, 0)
    wait()
    wait()
    assert.equal(seen.collections, 1)
  })

  it('is left alone if somebody calls, because a collection would hold up the next request', (t) => {
    const { seen, wait } = stage(t)
    seen.requests++
    wait()
    assert.equal(seen.collections, 0)
  })

  it('is left alone if there is so much of it that a collection takes long', (t) => {
    const { seen, wait } = stage(t, HEAP_MAX_BYTES + 1)
    wait()
    assert.equal(seen.collections, 0)
  })

  it('is left alone when the service stops', (t) => {
    const { seen, cancel, wait } = stage(t)
    cancel()
    wait()
    assert.equal(seen.collections, 0)
  })

  it('is really collected: what nobody holds is gone', () => {
    const script = `import { collectOnceIdle } from './src/commands/idle-memory.ts'
      let garbage = Array.from({ length: 200_000 }, () => ({}))
      const watched = new WeakRef(garbage)
      garbage = undefined
      collectOnceIdle(() => 0)
      setTimeout(() => console.log(watched.deref() === undefined), ${IDLE_MS + 500})`
    const flags = ['--no-warnings', '--input-type=module', '--eval']
    assert.equal(execFileSync(process.execPath, [...flags, script], { encoding: 'utf8' }), 'true\n')
  })
})
