import assert from 'node:assert/strict'
import { beforeEach, describe, it, mock, type TestContext } from 'node:test'
import * as fc from 'fast-check'
import type { EngineAddress } from '../../src/engines/address.ts'
import { leastBusy } from '../../src/engines/balance.ts'
import { noActivity } from '../../src/engines/server-activity.ts'
import { runCall } from '../../src/engines/upstream-call.ts'
import { AnswerStalled, deadlines, type AnswerHandler, type Sending } from '../../src/http-client/index.ts'
import type { CallEnd, RunningCall } from '../../src/ports/engine.ts'

/** What an address does with a call. */
const behaviours = [
  'refuses the connection',
  'never connects',
  'connects late',
  'resets',
  'has closed its connection',
  'closes its connection and never connects again',
  'says nothing',
  'refuses slowly',
  'refuses late',
  'refuses at length',
  'answers',
  'starts an answer',
  401,
  404,
  429,
  500,
  503,
  504,
  400,
] as const
type Behaviour = (typeof behaviours)[number]

const DEADLINE_MS = 1000

let timeMs = 0
function passTime(ms: number): void {
  timeMs += ms
  mock.timers.tick(ms)
}
/** For what happens late, but within the deadline. */
const LATE_MS = 600

interface Staged {
  readonly call: RunningCall
  readonly addresses: readonly EngineAddress[]
  /** The addresses that were sent the request, in order. */
  readonly sent: readonly number[]
  /** The addresses that were tried at all, in order. */
  readonly tried: readonly number[]
  /** The names of the errors that this side gave requests up with. */
  readonly aborts: readonly string[]
  /** Lets everything happen that needs no time. */
  settle(): Promise<void>
  end(): CallEnd | undefined
}

function stage(plan: readonly Behaviour[]): Staged {
  const sent: number[] = []
  const tried: number[] = []
  const aborts: string[] = []
  let end: CallEnd | undefined
  const addresses = plan.map((behaviour, index): EngineAddress => ({
    url: `engine ${index}`,
    prefix: '/v1',
    healthy: true,
    isDrained: () => false,
    inFlight: 0,
    activity: noActivity(),
    close: () => Promise.resolve(),
    ask: () => Promise.reject(new Error('nobody asks')),
    client: {
      send(_request, handler) {
        tried.push(index)
        const sending = behave(behaviour, handler, () => sent.push(index))
        return {
          ...sending,
          abort(cause) {
            aborts.push(cause.name)
            sending.abort(cause)
          },
        }
      },
      close: () => Promise.resolve(),
    },
  }))
  const call = runCall(
    {
      path: '/chat/completions',
      contentType: 'application/json',
      body: Buffer.from('{}'),
      receiver: { start() {}, data() {} },
    },
    { balance: leastBusy(addresses), lines: '', firstByte: deadlines(DEADLINE_MS, () => timeMs), callFailed() {} },
  )
  void call.ended.then((it) => (end = it))
  const settle = async (): Promise<void> => {
    for (let turns = 0; turns < 50; turns++) await Promise.resolve()
  }
  return { call, addresses, sent, tried, aborts, settle, end: () => end }
}

function behave(behaviour: Behaviour, handler: AnswerHandler, send: () => void): Sending {
  let isOver = false
  const fail = (reason: Error): void => {
    if (isOver) return
    isOver = true
    handler.failed(reason)
  }
  const refuse = (status: number): void => {
    if (isOver) return
    handler.head(status, {})
    isOver = true
    handler.ended()
  }
  const start = (): void => {
    if (isOver) return
    if (behaviour === 'refuses the connection') return fail(new Error('ECONNREFUSED'))
    handler.sending()
    send()
    if (behaviour === 'closes its connection and never connects again') return handler.resending()
    if (behaviour === 'has closed its connection') {
      handler.resending()
      if (isOver) return
      handler.sending()
      send()
    }
    if (behaviour === 'says nothing') return
    if (behaviour === 'refuses late') return void setTimeout(refuse, LATE_MS, 500)
    if (behaviour === 'refuses at length') {
      handler.head(400, {})
      for (let count = 0; count < 64; count++) handler.data(Buffer.alloc(16_384, 'x'))
      return handler.ended()
    }
    if (behaviour === 'starts an answer') return handler.head(200, {})
    if (behaviour === 'resets') return fail(new Error('ECONNRESET'))
    if (behaviour === 'refuses slowly') {
      handler.head(500, {})
      return fail(new AnswerStalled())
    }
    refuse(typeof behaviour === 'number' ? behaviour : 200)
  }
  if (behaviour === 'connects late') setTimeout(start, LATE_MS)
  else if (behaviour !== 'never connects') queueMicrotask(start)
  return { abort: fail, pause() {}, resume() {} }
}

const codeOf = (end: CallEnd | undefined): string =>
  end?.kind === 'failed' ? end.error.code : (end?.kind ?? 'still running')

describe('a call to an engine with several addresses', () => {
  beforeEach((t) => {
    mock.timers.enable({ apis: ['setTimeout'] })
    ;(t as TestContext).after(() => mock.timers.reset())
  })

  const cases: readonly [string, readonly Behaviour[], sent: readonly number[], end: string][] = [
    [
      'is tried at every address that cannot be reached',
      ['refuses the connection', 'refuses the connection', 'refuses the connection', 'answers'],
      [3],
      'ended',
    ],
    [
      'that crashes its engine is sent to one more, not to all',
      ['resets', 'resets', 'answers'],
      [0, 1],
      'upstream_error',
    ],
    [
      'is sent to the same address once more if a used connection was closed',
      ['has closed its connection', 'answers'],
      [0, 0],
      'ended',
    ],
    [
      'may be sent to the second address once more, too',
      ['resets', 'has closed its connection', 'answers'],
      [0, 1, 1],
      'ended',
    ],
    ['that is refused is sent once more', [500, 'answers'], [0, 1], 'ended'],
    ['that is refused twice fails with the second error', [500, 429, 'answers'], [0, 1], 'model_overloaded'],
    [
      'may pass over an unreachable address on its way to the second engine',
      ['resets', 'refuses the connection', 'answers'],
      [0, 2],
      'ended',
    ],
    ['that the engine refuses as wrong is not sent again', [400, 'answers'], [0], 'invalid_value'],
    ['is not sent again after a 504', [504, 'answers'], [0], 'upstream_timeout'],
    ['is not sent again after a refusal that never ends', ['refuses slowly', 'answers'], [0], 'upstream_timeout'],
  ]
  for (const [what, plan, sent, end] of cases) {
    it(what, async () => {
      const staged = stage(plan)
      await staged.settle()
      assert.deepEqual([staged.sent, codeOf(staged.end())], [sent, end])
    })
  }

  it('keeps 64 KiB of what an engine says when it refuses, and discards the rest', async (t) => {
    const { mock: concat } = t.mock.method(Buffer, 'concat')
    const kept = (): number[] => concat.calls.map(({ result }) => result?.length ?? 0)
    const staged = stage(['refuses at length'])
    await staged.settle()
    assert.equal(codeOf(staged.end()), 'invalid_value')
    assert.deepEqual(kept(), [65_536])
  })

  it('fails at its deadline, and is not sent again', async () => {
    const staged = stage(['says nothing', 'answers'])
    await staged.settle()
    passTime(DEADLINE_MS - 1)
    await staged.settle()
    assert.equal(codeOf(staged.end()), 'still running')
    passTime(1)
    await staged.settle()
    assert.deepEqual([staged.sent, codeOf(staged.end())], [[0], 'upstream_timeout'])
    assert.deepEqual(staged.aborts, ['AnswerStalled'])
  })

  it('has one deadline, whichever address has it when the time is over', async () => {
    for (const last of ['says nothing', 'never connects', 'refuses late'] as const) {
      const staged = stage(['refuses the connection', 'refuses late', last, 'answers'])
      await staged.settle()
      passTime(LATE_MS)
      await staged.settle()
      assert.deepEqual([staged.tried, codeOf(staged.end())], [[0, 1, 2], 'still running'])
      passTime(DEADLINE_MS - LATE_MS)
      await staged.settle()
      assert.deepEqual([staged.tried, codeOf(staged.end())], [[0, 1, 2], 'upstream_timeout'])
    }
  })

  it('has no deadline once the answer has started', async () => {
    const staged = stage(['starts an answer'])
    await staged.settle()
    passTime(10 * DEADLINE_MS)
    await staged.settle()
    assert.equal(codeOf(staged.end()), 'still running')
    staged.call.abort()
    await staged.settle()
    assert.equal(codeOf(staged.end()), 'aborted')
  })

  it('ends at once when the caller leaves before it is connected', async () => {
    const staged = stage(['never connects', 'answers'])
    await staged.settle()
    staged.call.abort()
    await staged.settle()
    assert.deepEqual([staged.sent, staged.call.isWithEngine(), codeOf(staged.end())], [[], false, 'aborted'])
    // Tracing tools count no error for it.
    assert.deepEqual(staged.aborts, ['AbortError'])
  })

  it('is with no engine while it waits to be sent once more', async () => {
    const staged = stage(['closes its connection and never connects again'])
    await staged.settle()
    staged.call.abort()
    await staged.settle()
    assert.deepEqual([staged.sent, staged.call.isWithEngine(), codeOf(staged.end())], [[0], false, 'aborted'])
  })

  it('sends nothing when the connection comes after the caller has left', async () => {
    const staged = stage(['connects late', 'answers'])
    await staged.settle()
    staged.call.abort()
    passTime(LATE_MS)
    await staged.settle()
    assert.deepEqual([staged.sent, staged.tried, codeOf(staged.end())], [[], [0], 'aborted'])
    assert.equal(staged.addresses[0]?.inFlight, 0)
  })

  it('keeps its rules whatever the addresses do and whenever the caller leaves', async () => {
    const plans = fc.array(fc.constantFrom(...behaviours), { maxLength: 6 })
    await fc.assert(
      fc.asyncProperty(plans, fc.option(fc.nat(20)), async (plan, leavesAfter) => {
        const staged = stage(plan)
        if (leavesAfter !== null) {
          for (let turns = 0; turns < leavesAfter; turns++) await Promise.resolve()
          staged.call.abort()
        }
        await staged.settle()
        for (const passedMs of [LATE_MS, DEADLINE_MS - LATE_MS, LATE_MS]) {
          passTime(passedMs)
          await staged.settle()
        }
        const { sent, tried } = staged
        if (plan[sent.at(-1) ?? -1] === 'starts an answer') staged.call.abort()
        await staged.settle()
        assert.notEqual(codeOf(staged.end()), 'still running')
        const engines = new Set(sent)
        assert.ok(engines.size <= 2, `sent to ${engines.size} addresses`)
        assert.equal(new Set(tried).size, tried.length, 'an address was tried twice')
        const isFinal = (behaviour: Behaviour | undefined): boolean =>
          [
            'has closed its connection',
            'closes its connection and never connects again',
            'says nothing',
            'refuses slowly',
            'refuses at length',
            'answers',
            'starts an answer',
            504,
            400,
          ].includes(behaviour ?? '')
        for (const index of [...engines].slice(0, -1)) assert.ok(!isFinal(plan[index]), `tried on after ${plan[index]}`)
        for (const [index, { inFlight }] of staged.addresses.entries()) {
          assert.equal(inFlight, 0, `calls at address ${index}`)
        }
        if (leavesAfter === null && tried.length < plan.length) {
          const last = plan[tried.at(-1) ?? 0]
          const isLate = last === 'never connects' || last === 'connects late' || last === 'refuses late'
          assert.ok(isFinal(last) || engines.size === 2 || isLate, `gave up after ${last}`)
        }
      }),
      { numRuns: 500 },
    )
  })
})
