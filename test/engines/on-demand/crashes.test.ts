import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { ScheduledCall } from '../../../src/engines/on-demand/decisions.ts'
import { onDemandEngine, type WaitingCalls } from '../../../src/engines/on-demand/on-demand-engine.ts'
import type { CallEnd, Engine, EngineCall, RunningCall } from '../../../src/engines/engine.ts'
import { ApiError } from '../../../src/shared/errors.ts'
import { handClock, turn } from '../../support/hand-clock.ts'

const MAX_WAIT_MS = 10_000
const unreachable: CallEnd = {
  kind: 'failed',
  started: false,
  lost: 'unsent',
  error: new ApiError('upstream_error', 'The engine could not be reached.'),
}

/** One call at an engine on demand, whose scheduler is the test. `hasCrashed`: what is known of the process when it is asked. */
function stage(t: TestContext, hasCrashed: Promise<boolean> = Promise.resolve(true)) {
  const clock = handClock(t.mock.timers)
  const calls: WaitingCalls = new Map()
  const left: ScheduledCall[] = []
  const arrived: ScheduledCall[] = []
  const ends: ((end: CallEnd) => void)[] = []
  const upstream = {
    run(): RunningCall {
      const { promise: ended, resolve } = Promise.withResolvers<CallEnd>()
      ends.push(resolve)
      const nothing = (): void => {}
      const abort = (): void => resolve({ kind: 'aborted' })
      return { ended, isWithEngine: () => true, learn: () => undefined, abort, pause: nothing, resume: nothing }
    },
  } as unknown as Engine
  const engine = onDemandEngine({
    clock,
    calls,
    upstream: () => upstream,
    start: () => undefined,
    newCall: () => new ScheduledCall('engine', clock.monotonic()),
    arrive: (call) => void arrived.push(call),
    leave: (call) => void left.push(call),
    crashed: () => hasCrashed,
    remove: () => Promise.resolve(),
  })
  const call = engine.run({ maxWaitMs: MAX_WAIT_MS } as EngineCall)
  let end: CallEnd | undefined
  void call.ended.then((it) => (end = it))
  return {
    clock,
    call,
    arrived,
    left,
    waiting: () => calls.size,
    end: () => end,
    ready: () => calls.get(arrived.at(-1)!)!.go(upstream),
    async ends(how: CallEnd) {
      ends.at(-1)!(how)
      await turn()
    },
  }
}

const codeOf = (end: CallEnd | undefined): string | undefined => (end?.kind === 'failed' ? end.error.code : end?.kind)

describe('a call of an engine on demand', () => {
  it('waits for the next start after each crash if no engine has seen it', async (t) => {
    const { ready, ends, arrived, left, end, waiting } = stage(t)
    for (let crashes = 0; crashes < 3; crashes++) {
      ready()
      await ends(unreachable)
    }
    assert.deepEqual([new Set(arrived).size, left, end(), waiting()], [4, arrived.slice(0, 3), undefined, 1])
    ready()
    await ends({ kind: 'ended' })
    assert.deepEqual([codeOf(end()), left.length, waiting()], ['ended', 4, 0])
  })

  it('waits for the next start once if its engine may have seen it, and fails with the second crash', async (t) => {
    const { ready, ends, arrived, left, end } = stage(t)
    for (const lost of ['unsent', 'sent', 'unsent', 'sent'] as const) {
      assert.equal(end(), undefined)
      ready()
      await ends({ ...unreachable, lost })
    }
    assert.deepEqual([arrived.length, codeOf(end()), left.length], [4, 'upstream_error', 4])
  })

  it('fails if the engine refused it, or still runs', async (t) => {
    const refused = stage(t)
    refused.ready()
    const { lost: _lost, ...refusal } = unreachable
    await refused.ends(refusal)
    assert.deepEqual([refused.arrived.length, codeOf(refused.end()), refused.left.length], [1, 'upstream_error', 1])
    t.mock.timers.reset()
    const running = stage(t, Promise.resolve(false))
    running.ready()
    await running.ends(unreachable)
    assert.deepEqual([running.arrived.length, codeOf(running.end())], [1, 'upstream_error'])
  })

  it('keeps its deadline, and its caller may leave, while it waits again', async (t) => {
    const late = stage(t)
    late.clock.advance(MAX_WAIT_MS - 2)
    late.ready()
    late.clock.advance(10 * MAX_WAIT_MS)
    await late.ends(unreachable)
    assert.equal(late.end(), undefined, 'time with the engine is no wait')
    late.clock.advance(1)
    await turn()
    assert.equal(late.end(), undefined, 'its wait began when it arrived')
    late.clock.advance(1)
    await turn()
    assert.deepEqual([codeOf(late.end()), late.waiting()], ['model_overloaded', 0])
    t.mock.timers.reset()
    const crashed = Promise.withResolvers<boolean>()
    const leaving = stage(t, crashed.promise)
    leaving.ready()
    await leaving.ends(unreachable)
    leaving.call.abort()
    await turn()
    // Its place is free before anything is known of the process, and nothing happens after that.
    assert.deepEqual([codeOf(leaving.end()), leaving.left.length], ['aborted', 1])
    crashed.resolve(true)
    await turn()
    assert.deepEqual([leaving.arrived.length, leaving.left.length, leaving.waiting()], [1, 1, 0])
  })
})
