import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { threadPace } from '../host/llama/thread-pace.ts'

/** A machine that gives a process at most `room` cores. The process computes a token every tenth of a second. */
function machine(threads: number) {
  const now = { at: 0, used: 0 }
  const counts: number[] = [threads]
  const pace = threadPace({ threads, set: (count) => counts.push(count), read: () => ({ ...now }) })
  return {
    counts,
    pace,
    compute(seconds: number, room: number) {
      for (let token = 0; token < seconds * 10; token++) {
        now.at += 100
        now.used += 100 * Math.min(counts.at(-1) ?? 0, room)
        pace.step()
      }
    },
    rest(seconds: number) {
      now.at += 1000 * seconds
    },
  }
}

describe('the number of threads', () => {
  it('stays the same while the machine has room', () => {
    const { counts, pace, compute } = machine(8)
    pace.begin()
    compute(60, 7.5)
    assert.deepEqual(counts, [8])
  })

  it('falls to what the machine provides, and rises again when it provides more', () => {
    const { counts, pace, compute } = machine(4)
    pace.begin()
    compute(2, 0.8)
    assert.deepEqual(counts, [4, 1])
    compute(10, 4)
    assert.deepEqual(counts, [4, 1, 2, 4])
  })

  it('is raised less and less often while that does not help', () => {
    const { counts, pace, compute } = machine(2)
    pace.begin()
    // Only one core is free: one thread runs undisturbed, a second one would not.
    compute(60, 1.1)
    const tries = counts.filter((count) => count === 2).length - 1
    assert.ok(tries >= 4 && tries <= 6, `${tries} tries`)
    compute(600, 1.1)
    assert.ok(counts.filter((count) => count === 2).length < 30)
  })

  it('does not depend on the time between answers', () => {
    const { counts, pace, compute, rest } = machine(2)
    for (let answer = 0; answer < 5; answer++) {
      pace.begin()
      compute(1, 2)
      pace.end()
      rest(60)
    }
    assert.deepEqual(counts, [2])
  })
})
