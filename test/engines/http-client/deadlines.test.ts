import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { deadlines } from '../../../src/engines/http-client/deadlines.ts'

describe('deadlines', () => {
  it('expire in the order in which they were set, except those that were cancelled', (t) => {
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

  it('share one timer, even when one that expires sets another', (t) => {
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

  it('expire at their time, and never after they were cancelled, whatever is set and cancelled before', (t) => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('set' as const), next: fc.boolean() }),
      fc.record({ kind: fc.constant('cancel' as const), which: fc.nat(20) }),
      fc.record({ kind: fc.constant('wait' as const), quarters: fc.integer({ min: 1, max: 6 }) }),
    )
    t.mock.timers.enable({ apis: ['setTimeout', 'Date'] })
    const wait = (quarters: number): void => {
      for (let count = 0; count < quarters; count++) t.mock.timers.tick(250)
    }
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const { set } = deadlines(1000, Date.now)
        const due: [number, number][] = []
        const expected: [number, number][] = []
        const all: { at: number; isCancelled: boolean; cancel: () => void }[] = []
        const add = (hasNext: boolean): void => {
          const number = all.length
          const cancel = set(() => {
            due.push([number, Date.now()])
            if (hasNext) add(false)
          })
          all.push({ at: Date.now() + 1000, isCancelled: false, cancel })
        }
        for (const it of steps) {
          if (it.kind === 'set') add(it.next)
          else if (it.kind === 'wait') wait(it.quarters)
          else {
            const chosen = all[it.which]
            chosen?.cancel()
            if (chosen && chosen.at > Date.now()) chosen.isCancelled = true
          }
        }
        wait(12)
        for (const [number, { at, isCancelled }] of all.entries()) if (!isCancelled) expected.push([number, at])
        assert.deepEqual(due.toSorted(byNumber), expected)
      }),
      { numRuns: 300 },
    )
  })
})

function byNumber([one]: [number, number], [other]: [number, number]): number {
  return one - other
}
