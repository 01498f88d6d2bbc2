import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CallEnd, Engine, EngineCall } from '../../../src/engines/engine.ts'
import { ScheduledCall } from '../../../src/engines/on-demand/decisions.ts'
import {
  onDemandEngine,
  type SchedulerLink,
  type WaitingCalls,
} from '../../../src/engines/on-demand/on-demand-engine.ts'

/** Calls that wait for their engine. The scheduler is scripted: the test says when the engine is ready. */

function stage() {
  const calls: WaitingCalls = new Map()
  const seen: string[] = []
  const timers: (readonly [number, () => void])[] = []
  const scheduled = new ScheduledCall('a', 0)
  const ended = Promise.withResolvers<CallEnd>()
  const running = {
    ended: ended.promise,
    isWithEngine: () => true,
    learn: (tokens: number) => void seen.push(`learn ${tokens}`),
    abort: () => void seen.push('abort'),
    pause: () => void seen.push('pause'),
    resume: () => void seen.push('resume'),
  }
  const upstream = {
    usable: () => false,
    addresses: () => ['address'],
    readLoad: async () => 'load',
    run: () => running,
  } as unknown as Engine
  const state = { upstream: undefined as Engine | undefined }
  const link: SchedulerLink = {
    clock: {
      now: () => 0,
      monotonic: () => 0,
      after(ms, ring) {
        const timer = [ms, ring] as const
        timers.push(timer)
        return () => void (timers.includes(timer) && timers.splice(timers.indexOf(timer), 1))
      },
    },
    calls,
    upstream: () => state.upstream,
    start: () => undefined,
    newCall: () => scheduled,
    arrive: (call) => void seen.push(`arrive ${calls.has(call)}`),
    leave: (call) => void seen.push(`leave ${calls.has(call)}`),
    crashed: async () => false,
    remove: async () => void seen.push('remove'),
  }
  const engine = onDemandEngine(link)
  const run = (maxWaitMs?: number) => engine.run({ maxWaitMs } as EngineCall)
  return {
    engine,
    link,
    state,
    upstream,
    run,
    seen,
    timers,
    ended,
    waiting: () => calls.get(scheduled) ?? assert.fail(),
  }
}

const end = { kind: 'completed' } as unknown as CallEnd

describe('a call of an engine on demand', () => {
  it('waits until the engine is ready, and leaves when it has ended there', async () => {
    const { run, seen, timers, upstream, ended, waiting } = stage()
    const call = run(500)
    assert.deepEqual([seen, timers.map(([ms]) => ms), call.isWithEngine()], [['arrive true'], [500], false])
    call.learn(1)
    waiting().go(upstream)
    assert.deepEqual([timers, call.isWithEngine()], [[], true])
    call.learn(2)
    call.pause()
    call.resume()
    call.abort()
    ended.resolve(end)
    assert.equal(await call.ended, end)
    assert.deepEqual(seen, ['arrive true', 'learn 2', 'pause', 'resume', 'abort', 'leave false'])
  })

  it('fails when the engine is not ready in time', async () => {
    const { run, seen, timers } = stage()
    const call = run(500)
    timers[0]?.[1]()
    const result = await call.ended
    assert.ok(result.kind === 'failed' && result.error.code === 'model_overloaded' && !result.started)
    assert.equal(result.error.param, 'model')
    assert.deepEqual([seen, timers], [['arrive true', 'leave false'], []])
  })

  it('waits at least no time at all, and without a limit for as long as it takes', () => {
    const { run, timers } = stage()
    for (const maxWaitMs of [-5, undefined, Infinity]) run(maxWaitMs)
    assert.deepEqual(
      timers.map(([ms]) => ms),
      [0],
    )
  })

  it('fails with the reason when the engine cannot start, or has ended just now', async () => {
    for (const [refuse, reason] of [
      ['refuse', 'no room'],
      ['go', 'it ended'],
    ] as const) {
      const { run, seen, timers, waiting } = stage()
      const call = run(500)
      if (refuse === 'refuse') waiting().refuse(reason)
      else waiting().go(undefined)
      const result = await call.ended
      assert.ok(result.kind === 'failed' && result.error.code === 'model_unavailable' && !result.started)
      assert.ok(result.error.message.includes(`not running: ${reason}.`), result.error.message)
      assert.deepEqual([seen, timers, result.error.param], [['arrive true', 'leave false'], [], 'model'])
    }
  })

  it('that was aborted while it waited leaves at once', async () => {
    const { run, seen, timers } = stage()
    const call = run(500)
    call.abort()
    assert.deepEqual(await call.ended, { kind: 'aborted' })
    assert.deepEqual([seen, timers], [['arrive true', 'leave false'], []])
  })

  it('that was paused while it waited is paused at the engine, unless it was resumed', () => {
    const paused = stage()
    const call = paused.run()
    call.pause()
    paused.waiting().go(paused.upstream)
    assert.deepEqual(paused.seen, ['arrive true', 'pause'])
    const resumed = stage()
    const other = resumed.run()
    other.pause()
    other.resume()
    resumed.waiting().go(resumed.upstream)
    assert.deepEqual(resumed.seen, ['arrive true'])
  })
})

describe('an engine on demand', () => {
  it('counts as usable while it does not run, and else is what its server is', async () => {
    const { engine, state, upstream } = stage()
    assert.deepEqual([engine.usable(), engine.addresses(), await engine.readLoad?.()], [true, [], undefined])
    state.upstream = upstream
    assert.deepEqual([engine.usable(), engine.addresses(), await engine.readLoad?.()], [false, ['address'], 'load'])
  })

  it('is removed when the last one that uses it has let go', async () => {
    const { engine, seen } = stage()
    const [first, second] = [engine.retain(), engine.retain()]
    const closing = engine.close()
    first()
    await new Promise(setImmediate)
    assert.deepEqual(seen, [])
    second()
    await closing
    assert.deepEqual(seen, ['remove'])
    const unused = stage()
    unused.engine.retain()()
    await unused.engine.close()
    assert.deepEqual(unused.seen, ['remove'])
  })
})
