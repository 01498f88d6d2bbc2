import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { PreemptionSignal } from '../../src/inference/pipeline/admit.ts'
import { noTicket } from '../../src/queue/admission.ts'
import { engineCalls, type EngineCalls } from '../../src/inference/pipeline/engine-calls.ts'
import type { AlarmClock } from '../../src/shared/clock.ts'
import type { CallEnd, Engine } from '../../src/engines/engine.ts'
import type { Reply } from '../../src/server/reply.ts'
import { turn } from '../support/hand-clock.ts'

const ENDED: CallEnd = { kind: 'ended' }
const call = (bytes: number, repeatsInput = false): Parameters<EngineCalls['run']>[0] => ({
  path: '/x',
  contentType: 'text/plain',
  body: Buffer.alloc(bytes),
  repeatsInput,
  receiver: { start() {}, data() {} },
})

/** An engine whose calls the test ends, and a caller who may leave or not read. */
function stage() {
  const log: string[] = []
  const ends: ((end: CallEnd) => void)[] = []
  const state = { isGone: false, isWithEngine: false }
  const gone = new Set<() => void>()
  let drained: (() => void) | undefined
  const engine = {
    run() {
      const number = ends.length + 1
      const { promise, resolve } = Promise.withResolvers<CallEnd>()
      ends.push(resolve)
      const note = (what: string) => (): void => void log.push(`${what} ${number}`)
      return {
        ended: promise,
        isWithEngine: () => state.isWithEngine,
        learn: (tokens: number) => ({ here: tokens, anywhere: number, isTelling: true }),
        abort: note('abort'),
        pause: note('pause'),
        resume: note('resume'),
      }
    },
  } as unknown as Engine
  const preemption: PreemptionSignal = { isDue: false, react: undefined }
  const reply = {
    get isGone() {
      return state.isGone
    },
    onGone(listener: () => void) {
      gone.add(listener)
      return () => gone.delete(listener)
    },
    onDrain: (react: () => void) => void (drained = react),
  } as unknown as Reply
  return {
    calls: engineCalls(engine, reply, {}, { ticket: noTicket, preemption, leftMs: 5000 }),
    log,
    state,
    gone,
    drain: () => drained?.(),
    end: async (end: CallEnd = ENDED) => {
      ends.at(-1)?.(end)
      await turn()
    },
  }
}

describe('the engine calls of a request', () => {
  it('are aborted when the caller disconnects, and none starts after that', async () => {
    const { calls, log, state, gone, end } = stage()
    const first = calls.run(call(1))
    for (const leave of gone) leave()
    assert.deepEqual(log, ['abort 1'])
    await end({ kind: 'aborted' })
    assert.deepEqual([await first, gone.size], [{ kind: 'aborted' }, 0])
    state.isGone = true
    assert.deepEqual(await calls.run(call(1)), { kind: 'aborted' })
    assert.deepEqual(log, ['abort 1'])
  })

  it('report when none of them is running: at once if none is, also between two of them', async () => {
    const { calls, end } = stage()
    const idle: string[] = []
    calls.whenIdle(() => idle.push('before'))
    assert.deepEqual(idle, ['before'])
    const first = calls.run(call(1))
    calls.whenIdle(() => idle.push('after the first'))
    await turn()
    assert.equal(idle.length, 1)
    await end()
    await first
    assert.deepEqual(idle, ['before', 'after the first'])
    calls.whenIdle(() => idle.push('between'))
    assert.equal(idle.at(-1), 'between')
  })

  it('are aborted only while they run', async () => {
    const { calls, log, end } = stage()
    calls.abort()
    const first = calls.run(call(1))
    calls.abort()
    assert.deepEqual(log, ['abort 1'])
    await end()
    await first
    calls.abort()
    assert.deepEqual(log, ['abort 1'])
  })

  it('are aborted after a time if they still run', async () => {
    const { calls, log, end } = stage()
    const alarms: { ms: number; ring(): void; isCancelled: boolean }[] = []
    const clock: AlarmClock = {
      now: () => 0,
      monotonic: () => 0,
      after(ms, ring) {
        const alarm = { ms, ring, isCancelled: false }
        alarms.push(alarm)
        return () => (alarm.isCancelled = true)
      },
    }
    calls.abortAfter(500, clock)
    assert.equal(alarms.length, 0, 'nothing runs')
    const first = calls.run(call(1))
    calls.abortAfter(500, clock)
    assert.deepEqual(
      alarms.map(({ ms, isCancelled }) => [ms, isCancelled]),
      [[500, false]],
    )
    alarms[0]?.ring()
    assert.deepEqual(log, ['abort 1'])
    await end()
    await first
    assert.equal(alarms[0]?.isCancelled, true)
    calls.abortAfter(500, clock)
    assert.equal(alarms.length, 1)
  })

  it('stay paused until the caller has read, over several calls', async () => {
    const { calls, log, drain, end } = stage()
    const first = calls.run(call(1))
    calls.pauseUntilDrained()
    await end()
    await first
    const second = calls.run(call(1))
    assert.deepEqual(log, ['pause 1', 'pause 2'])
    drain()
    assert.deepEqual(log, ['pause 1', 'pause 2', 'resume 2'])
    await end()
    await second
    void calls.run(call(1))
    assert.equal(log.length, 3, 'the next one is not paused')
  })

  it('count the bytes of their bodies, without those that repeat the input', async () => {
    const { calls, state, end } = stage()
    assert.deepEqual([calls.sentBytes(), calls.isWithEngine(), calls.learn(3)], [0, false, undefined])
    for (const next of [call(10), call(20, true), call(5)]) {
      const running = calls.run(next)
      await end()
      await running
    }
    assert.equal(calls.sentBytes(), 15)
    state.isWithEngine = true
    assert.equal(calls.isWithEngine(), true)
    assert.deepEqual(calls.learn(3), { here: 3, anywhere: 3, isTelling: true })
  })
})
