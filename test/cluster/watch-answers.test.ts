import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { watchAnswers } from '../../src/cluster/redis/watch-answers.ts'
import { turn } from '../support/hand-clock.ts'

describe('a watch for unanswered calls on a connection', () => {
  function stage() {
    let nowMs = 0
    let silences = 0
    const clock = { now: () => 0, monotonic: () => nowMs, after: () => () => {} }
    const watch = watchAnswers(clock, 100, () => (silences += 1))
    return {
      watch,
      at: (ms: number) => void (nowMs = ms),
      async silencesAfterCheck(): Promise<number> {
        watch.check()
        for (let turns = 0; turns < 3; turns += 1) await turn()
        return silences
      },
    }
  }

  it('reports silence when a call is open for longer than the limit', async () => {
    const { watch, at, silencesAfterCheck } = stage()
    at(50)
    void watch.expect(new Promise(() => {}))
    at(150)
    assert.equal(await silencesAfterCheck(), 0, 'not after exactly that')
    at(151)
    assert.equal(await silencesAfterCheck(), 1)
  })

  it('waits for the full limit after each answer, even a failed one', async () => {
    const { watch, at, silencesAfterCheck } = stage()
    const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const answered = watch.expect(first.promise)
    const failed = watch.expect(second.promise).catch(() => {})
    void watch.expect(new Promise(() => {}))
    at(90)
    first.resolve()
    await answered
    at(180)
    assert.equal(await silencesAfterCheck(), 0)
    second.reject(new Error('it failed'))
    await failed
    at(280)
    assert.equal(await silencesAfterCheck(), 0)
    at(281)
    assert.equal(await silencesAfterCheck(), 1)
  })

  it('reports nothing without an open call, or for calls of a connection that has ended', async () => {
    const { watch, at, silencesAfterCheck } = stage()
    at(1000)
    assert.equal(await silencesAfterCheck(), 0)
    void watch.expect(new Promise(() => {}))
    watch.forget()
    at(2000)
    assert.equal(await silencesAfterCheck(), 0)
  })

  it('reads the sockets of a process that was suspended before it decides', async () => {
    const { watch, at, silencesAfterCheck } = stage()
    const late = Promise.withResolvers<void>()
    void watch.expect(late.promise)
    at(5000)
    setImmediate(() => late.resolve())
    assert.equal(await silencesAfterCheck(), 0)
  })
})
