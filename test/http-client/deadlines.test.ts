import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { deadlines } from '../../src/http-client/deadlines.ts'

describe('deadlines', () => {
  it('come due in the order in which they were set, except those that were cancelled', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout', 'Date'] })
    const { set } = deadlines(1000, Date.now)
    const due: string[] = []
    const cancel = ['first', 'middle', 'last'].map((name) => set(() => due.push(name)))
    cancel[1]?.()
    cancel[1]?.()
    t.mock.timers.tick(999)
    assert.deepEqual(due, [])
    t.mock.timers.tick(1)
    assert.deepEqual(due, ['first', 'last'])
  })

  it('share one timer, also when one that comes due sets another', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout', 'Date'] })
    const running = new Set<unknown>()
    const { setTimeout: start, clearTimeout: stop } = globalThis
    t.mock.method(globalThis, 'setTimeout', (look: () => void, ms: number) => {
      const timer = start(() => {
        running.delete(timer)
        look()
      }, ms)
      running.add(timer)
      return timer
    })
    t.mock.method(globalThis, 'clearTimeout', (timer: NodeJS.Timeout) => {
      running.delete(timer)
      stop(timer)
    })
    const { set } = deadlines(1000, Date.now)
    set(() => set(() => {}))
    t.mock.timers.tick(500)
    set(() => {})
    t.mock.timers.tick(500)
    assert.equal(running.size, 1)
  })
})
