import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { IDLE_MS, keepAlive, streamedAnswer } from '../../src/inference/pipeline/streamed-answer.ts'
import type { AdmittedRequest } from '../../src/inference/pipeline/admitted-request.ts'
import type { PipelineParts } from '../../src/inference/pipeline/parts.ts'
import type { CallEnd, EngineCall } from '../../src/engines/engine.ts'
import { handClock, turn } from '../support/hand-clock.ts'

describe('the keep-alive of a stream', () => {
  it('[A8] pings after each pause, and only after a whole one', (t) => {
    const clock = handClock(t.mock.timers)
    let pings = 0
    const alive = keepAlive(clock, () => pings++)
    clock.advance(10 * IDLE_MS)
    assert.equal(pings, 0, 'before the engine has answered')
    alive.start()
    alive.start()
    clock.advance(IDLE_MS - 1)
    alive.sent()
    clock.advance(IDLE_MS - 1)
    assert.equal(pings, 0, 'something was sent meanwhile')
    clock.advance(1)
    assert.equal(pings, 1)
    clock.advance(IDLE_MS)
    clock.advance(IDLE_MS)
    assert.equal(pings, 3)
    alive.stop()
    clock.advance(10 * IDLE_MS)
    assert.equal(pings, 3, 'after the end')
  })

  it('sets no timer for an API without pings', (t) => {
    const clock = handClock(t.mock.timers)
    const after = t.mock.method(clock, 'after')
    keepAlive(clock, undefined).start()
    assert.equal(after.mock.callCount(), 0)
  })
})

describe('a streamed answer', () => {
  it('[A8] opens with a ping when its engine has answered and then sends nothing', async (t) => {
    const clock = handClock(t.mock.timers)
    const sent: string[] = []
    const ended = Promise.withResolvers<CallEnd>()
    let call: EngineCall | undefined
    const relay = {
      push: () => '',
      isDone: () => false,
      isBroken: () => false,
      deltaCount: () => 0,
      isPastLimit: () => false,
      idle: () => 'ping',
    }
    const request = {
      job: { calls: [{}], answer: {}, model: { id: 'x/y' } },
      intent: { requestId: 'id', startedAt: 0 },
      reply: { openStream: () => sent.push('open'), write: (text: string) => sent.push(text) > 0 },
      calls: {
        run(running: EngineCall) {
          call = running
          return ended.promise
        },
        abort() {},
        abortAfter() {},
        keep: () => true,
      },
      waitMs: 0,
    } as unknown as AdmittedRequest
    const path = streamedAnswer({ clock } as unknown as PipelineParts, request, {
      kind: 'streamed',
      relay: () => relay as never,
    })
    const taking = path.takeFromEngine()
    await turn()
    clock.advance(2 * IDLE_MS)
    assert.deepEqual(sent, [], 'the engine has not answered: a refusal may still get a status of its own')
    call?.receiver.start({})
    clock.advance(IDLE_MS)
    assert.deepEqual(sent, ['open', 'ping'])
    ended.resolve({ kind: 'ended' })
    await taking
    clock.advance(10 * IDLE_MS)
    assert.deepEqual(sent, ['open', 'ping'])
  })
})
