import assert from 'node:assert/strict'
import { beforeEach, describe, it, mock, type TestContext } from 'node:test'
import * as fc from 'fast-check'
import { ApiError } from '../../src/shared/errors.ts'
import { untraced } from '../../src/server/incoming-request.ts'
import type { EngineAddress } from '../../src/engines/address.ts'
import type { AdapterLoads } from '../../src/engines/adapter-loads.ts'
import { leastBusy } from '../../src/engines/balance.ts'
import { noActivity } from '../../src/engines/server-activity.ts'
import { runCall } from '../../src/engines/upstream-call.ts'
import {
  AnswerStalled,
  deadlines,
  type AnswerHandler,
  type ClientRequest,
  type Sending,
} from '../../src/engines/http-client/index.ts'
import type { CallEnd, RunningCall } from '../../src/engines/engine.ts'

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
  'breaks off its answer',
  'stalls in its answer',
  'answers without room for it',
  'refuses as too long',
  200,
  299,
  300,
  302,
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
  /** The requests as they were sent. */
  readonly requests: readonly ClientRequest[]
  /** What the receiver got: headers, and then bytes. */
  readonly received: readonly unknown[]
  /** The failures that were reported: which address, and why. */
  readonly failures: readonly (readonly [url: string, reason: string])[]
  /** The addresses whose caches count as gone. */
  readonly forgotten: readonly number[]
  /** What was paused and resumed, by address. */
  readonly pauses: readonly string[]
  /** Lets everything happen that needs no time. */
  settle(): Promise<void>
  end(): CallEnd | undefined
}

/** `adapters`: the call needs an adapter, and they load it. */
function stage(plan: readonly Behaviour[], adapters?: AdapterLoads): Staged {
  const sent: number[] = []
  const tried: number[] = []
  const aborts: string[] = []
  const requests: ClientRequest[] = []
  const received: unknown[] = []
  const failures: [string, string][] = []
  const forgotten: number[] = []
  const pauses: string[] = []
  let end: CallEnd | undefined
  const addresses = plan.map((behaviour, index): EngineAddress => ({
    url: `engine ${index}`,
    prefix: '/v1',
    healthy: true,
    isDrained: () => false,
    inFlight: 0,
    activity: noActivity(),
    close: () => Promise.resolve(),
    query: () => Promise.reject(new Error('not called')),
    client: {
      send(request, handler) {
        tried.push(index)
        requests.push(request)
        const sending = behave(behaviour, handler, () => sent.push(index))
        return {
          pause: () => pauses.push(`pause ${index}`),
          resume: () => pauses.push(`resume ${index}`),
          abort(cause) {
            aborts.push(cause.name)
            sending.abort(cause)
          },
        }
      },
      close: () => Promise.resolve(),
    },
  }))
  const balance = leastBusy(addresses)
  const call = runCall(
    {
      path: '/chat/completions',
      contentType: 'application/json',
      body: Buffer.from('{"n":1}'),
      inputName: 'messages',
      adapter: adapters && { name: 'lora-1', source: '/loras/one' },
      trace: untraced('request-1', {}),
      receiver: {
        start: (headers) => received.push(headers),
        data: (chunk) => received.push(chunk.toString()),
      },
    },
    {
      balance: {
        ...balance,
        next(prompt, triedBefore) {
          const chosen = balance.next(prompt, triedBefore)
          return chosen && { ...chosen, learn: (tokens) => ({ here: tokens, anywhere: 1, isTelling: true }) }
        },
      },
      adapters,
      forget: (address) => forgotten.push(addresses.indexOf(address)),
      lines: 'authorization: Bearer key\r\n',
      takesRequestIds: true,
      firstByte: deadlines(DEADLINE_MS, () => timeMs),
      callFailed: (url, reason) => failures.push([url, reason]),
    },
  )
  void call.ended.then((it) => (end = it))
  const settle = async (): Promise<void> => {
    for (let turns = 0; turns < 50; turns++) await Promise.resolve()
  }
  return {
    call,
    addresses,
    sent,
    tried,
    aborts,
    requests,
    received,
    failures,
    forgotten,
    pauses,
    settle,
    end: () => end,
  }
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
    if (behaviour === 'refuses as too long') {
      handler.head(400, {})
      handler.data(Buffer.from('{"error":{"message":"maximum con'))
      handler.data(Buffer.from('text length"}}'))
      return handler.ended()
    }
    if (behaviour === 'answers without room for it') return fail(new ApiError('model_overloaded', 'No room.'))
    if (behaviour === 'breaks off its answer' || behaviour === 'stalls in its answer') {
      handler.head(200, { 'x-engine': '1' })
      handler.data(Buffer.from('one'))
      handler.data(Buffer.from('two'))
      return fail(behaviour === 'breaks off its answer' ? new Error('ECONNRESET') : new AnswerStalled('silent'))
    }
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

  it('keeps 64 KiB of an engine’s refusal, and discards the rest', async (t) => {
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

  it('ends at once when the caller disconnects before it is connected', async () => {
    const staged = stage(['never connects', 'answers'])
    await staged.settle()
    staged.call.abort()
    await staged.settle()
    assert.deepEqual([staged.sent, staged.call.isWithEngine(), codeOf(staged.end())], [[], false, 'aborted'])
    // Tracing tools count no error for it.
    assert.deepEqual(staged.aborts, ['AbortError'])
  })

  it('is with no engine while it waits to be resent', async () => {
    const staged = stage(['closes its connection and never connects again'])
    await staged.settle()
    staged.call.abort()
    await staged.settle()
    assert.deepEqual([staged.sent, staged.call.isWithEngine(), codeOf(staged.end())], [[0], false, 'aborted'])
  })

  it('that fails says whether its engine was lost before an answer, and whether that may have seen the request', async () => {
    const plans: readonly (readonly [plan: readonly Behaviour[], lost: 'unsent' | 'sent' | undefined])[] = [
      [[], 'unsent'],
      [['refuses the connection'], 'unsent'],
      [['resets'], 'sent'],
      [['resets', 'refuses the connection'], 'sent'],
      [['resets', 'resets'], 'sent'],
      [['resets', 500], undefined],
      [[500, 'refuses the connection'], 'sent'],
      [[400], undefined],
      [['refuses slowly'], undefined],
      [['breaks off its answer'], undefined],
      [['answers without room for it'], undefined],
    ]
    for (const [plan, lost] of plans) {
      const staged = stage(plan)
      await staged.settle()
      const end = staged.end()
      assert.ok(end?.kind === 'failed')
      assert.equal(end.lost, lost, plan.join(', then '))
    }
  })

  it('sends nothing when the connection opens after the caller has disconnected', async () => {
    const staged = stage(['connects late', 'answers'])
    await staged.settle()
    staged.call.abort()
    passTime(LATE_MS)
    await staged.settle()
    assert.deepEqual([staged.sent, staged.tried, codeOf(staged.end())], [[], [0], 'aborted'])
    assert.equal(staged.addresses[0]?.inFlight, 0)
  })

  it('is sent with its headers, its body and the path of each address', async () => {
    const staged = stage(['resets', 'answers'])
    await staged.settle()
    const request = {
      method: 'POST',
      path: '/v1/chat/completions',
      lines: 'authorization: Bearer key\r\ncontent-type: application/json\r\nx-request-id: request-1\r\n',
      body: Buffer.from('{"n":1}'),
    }
    assert.deepEqual(staged.requests, [request, request])
  })

  it('gives its receiver the headers and the bytes of a good answer, and nothing of a refusal', async () => {
    const staged = stage([500, 'breaks off its answer'])
    await staged.settle()
    assert.deepEqual(staged.received, [{ 'x-engine': '1' }, 'one', 'two'])
    const refused = stage(['refuses at length'])
    await refused.settle()
    assert.deepEqual(refused.received, [])
    for (const status of [200, 299, 300, 302] as const) {
      const answered = stage([status])
      await answered.settle()
      assert.equal(answered.received.length, status < 300 ? 1 : 0, String(status))
    }
  })

  it('is with an engine from when it was sent until it is refused, and again when it is resent', async () => {
    const silent = stage(['says nothing'])
    assert.equal(silent.call.isWithEngine(), false)
    await silent.settle()
    assert.equal(silent.call.isWithEngine(), true)
    silent.call.abort()
    const refused = stage([500, 'never connects'])
    await refused.settle()
    assert.equal(refused.call.isWithEngine(), false)
    refused.call.abort()
    const sentOn = stage([500, 'says nothing'])
    await sentOn.settle()
    assert.equal(sentOn.call.isWithEngine(), true)
    sentOn.call.abort()
    await Promise.all([silent, refused, sentOn].map(({ settle }) => settle()))
  })

  it('stays paused at the next address, until it is resumed', async () => {
    const staged = stage(['refuses late', 'refuses late', 'says nothing'])
    await staged.settle()
    staged.call.pause()
    passTime(LATE_MS)
    await staged.settle()
    assert.deepEqual(staged.pauses, ['pause 0', 'pause 1'])
    staged.call.resume()
    assert.deepEqual(staged.pauses, ['pause 0', 'pause 1', 'resume 1'])
    passTime(DEADLINE_MS)
    await staged.settle()
    // It has ended.
    staged.call.pause()
    staged.call.resume()
    assert.equal(staged.pauses.length, 3)
    const later = stage(['refuses late', 'says nothing'])
    await later.settle()
    later.call.pause()
    later.call.resume()
    passTime(LATE_MS)
    await later.settle()
    assert.deepEqual(later.pauses, ['pause 0', 'resume 0'], 'and is not paused at the one after')
    later.call.abort()
  })

  it('reports to the balancer what was cached', async () => {
    const staged = stage(['answers'])
    await staged.settle()
    assert.deepEqual(staged.call.learn(7), { here: 7, anywhere: 1, isTelling: true })
    assert.equal(stage([]).call.learn(7), undefined)
  })

  const ends: readonly [Behaviour, end: readonly unknown[], seen: Readonly<Record<string, unknown>>][] = [
    ['answers', ['ended'], { failures: [], forgotten: [], inDoubt: false, signs: 1 }],
    [
      'refuses the connection',
      ['upstream_error', 'The engine could not be reached.', false],
      { failures: [['engine 0', 'ECONNREFUSED']], forgotten: [0], inDoubt: true, signs: 0 },
    ],
    [
      'resets',
      ['upstream_error', 'The engine could not be reached.', false],
      { failures: [['engine 0', 'ECONNRESET']], forgotten: [0], inDoubt: true, signs: 0 },
    ],
    [
      'breaks off its answer',
      ['upstream_error', 'The engine broke off in the middle of its answer.', true],
      { failures: [['engine 0', 'ECONNRESET']], forgotten: [0], inDoubt: true, signs: 3 },
    ],
    [
      'stalls in its answer',
      ['upstream_timeout', 'The engine did not answer in time.', true],
      { failures: [['engine 0', 'silent']], forgotten: [], inDoubt: true, signs: 3 },
    ],
    [
      'answers without room for it',
      ['model_overloaded', 'No room.', false],
      { failures: [['engine 0', 'No room.']], forgotten: [], inDoubt: false, signs: 0 },
    ],
    [
      500,
      ['upstream_error', 'The engine failed with status 500.', false],
      { failures: [['engine 0', 'status 500']], forgotten: [], inDoubt: false, signs: 0 },
    ],
    [
      400,
      ['invalid_value', 'The engine refused the request as invalid.', false],
      { failures: [], forgotten: [], inDoubt: false, signs: 0 },
    ],
    [
      'says nothing',
      ['upstream_timeout', 'The engine did not answer in time.', false],
      {
        failures: [['engine 0', 'no answer within first_byte_timeout_ms']],
        forgotten: [],
        inDoubt: true,
        signs: 0,
      },
    ],
  ]
  for (const [behaviour, expected, seen] of ends) {
    it(`ends with the outcome of its only engine, which is known from then on: ${behaviour}`, async () => {
      const staged = stage([behaviour])
      await staged.settle()
      passTime(DEADLINE_MS)
      await staged.settle()
      const end = staged.end()
      const outcome = end?.kind === 'failed' ? [end.error.code, end.error.message, end.started] : [end?.kind]
      assert.deepEqual(outcome, expected)
      const { activity, inFlight } = staged.addresses[0]!
      assert.deepEqual(
        {
          failures: staged.failures,
          forgotten: staged.forgotten,
          inDoubt: activity.isInDoubt,
          signs: activity.signsOfLife,
        },
        seen,
      )
      assert.deepEqual([inFlight, activity.inFlight], [0, 0])
    })
  }

  it('fails without an address, and a caller that disconnects does not put an engine in doubt', async () => {
    const staged = stage([])
    await staged.settle()
    const end = staged.end()
    assert.ok(end?.kind === 'failed')
    assert.deepEqual([end.error.code, end.error.param, end.started], ['model_unavailable', 'model', false])
    const left = stage(['says nothing'])
    await left.settle()
    left.call.abort()
    await left.settle()
    assert.equal(codeOf(left.end()), 'aborted')
    assert.deepEqual([left.addresses[0]?.activity.isInDoubt, left.failures, left.forgotten], [false, [], []])
  })

  it('that is too long names the field of the request', async () => {
    const staged = stage(['refuses as too long'])
    await staged.settle()
    const end = staged.end()
    assert.ok(end?.kind === 'failed')
    assert.deepEqual([end.error.code, end.error.param], ['context_length_exceeded', 'messages'])
  })

  it('that is aborted at its deadline keeps its first outcome', async () => {
    const staged = stage(['says nothing'])
    await staged.settle()
    staged.call.abort()
    passTime(DEADLINE_MS)
    await staged.settle()
    assert.equal(codeOf(staged.end()), 'aborted')
  })

  it('keeps its rules whatever the addresses do and whenever the caller disconnects', async () => {
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
            'breaks off its answer',
            'stalls in its answer',
            'refuses as too long',
            200,
            299,
            300,
            302,
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

describe('a call that needs an adapter', () => {
  /** Loads are answered by the test, by address. */
  function loadsOf(isMissing = (): boolean => false) {
    const loading: { readonly address: EngineAddress; answer(fields: object): void; fail(error: Error): void }[] = []
    const forgotten: string[] = []
    const adapters: AdapterLoads = {
      load(address) {
        const { promise, resolve, reject } = Promise.withResolvers<object>()
        loading.push({ address, answer: resolve, fail: reject })
        return promise as ReturnType<AdapterLoads['load']>
      },
      forget: ({ url }) => void forgotten.push(url),
      isMissing,
    }
    return { adapters, loading, forgotten }
  }

  it('is sent once it is loaded, with the fields that name it', async () => {
    const { adapters, loading } = loadsOf()
    const { settle, sent, requests, addresses, end } = stage(['answers'], adapters)
    await settle()
    assert.deepEqual([sent, addresses[0]?.inFlight], [[], 1])
    loading[0]?.answer({ lora_path: 'lora-1' })
    await settle()
    assert.deepEqual(requests[0]?.body, Buffer.from('{"lora_path":"lora-1","n":1}'))
    assert.deepEqual([codeOf(end()), addresses[0]?.inFlight], ['ended', 0])
  })

  it('goes to another address if it cannot be loaded, and fails when none is left', async () => {
    const { adapters, loading } = loadsOf()
    const { settle, sent, failures, addresses, end } = stage(['answers', 'answers'], adapters)
    for (const reason of ['no memory', 'no such file']) {
      loading.at(-1)?.fail(new Error(reason))
      await settle()
    }
    const result = end()
    assert.ok(result?.kind === 'failed' && !result.started && result.lost === 'unsent')
    assert.deepEqual([result.error.code, result.error.param], ['model_unavailable', 'model'])
    assert.deepEqual(failures, [
      ['engine 0', 'adapter lora-1: no memory'],
      ['engine 1', 'adapter lora-1: no such file'],
    ])
    assert.deepEqual([sent, addresses.map(({ inFlight }) => inFlight)], [[], [0, 0]])
  })

  it('ends at once when the caller disconnects while it is loaded, and is not sent afterwards', async () => {
    for (const isLoaded of [true, false]) {
      const { adapters, loading } = loadsOf()
      const { settle, tried, failures, addresses, call, end } = stage(['answers', 'answers'], adapters)
      call.pause()
      call.resume()
      call.abort()
      await settle()
      assert.deepEqual([codeOf(end()), addresses[0]?.inFlight], ['aborted', 0])
      if (isLoaded) loading[0]?.answer({})
      else loading[0]?.fail(new Error('no memory'))
      await settle()
      assert.deepEqual([tried, failures, loading.length], [[], [], 1])
    }
  })

  it('loads it again once if the server has lost it', async () => {
    const { adapters, loading, forgotten } = loadsOf(() => true)
    const { settle, sent, end } = stage([404, 'answers'], adapters)
    for (let loads = 0; loads < 3; loads++) {
      loading.at(-1)?.answer({})
      await settle()
    }
    assert.deepEqual(
      loading.map(({ address }) => address.url),
      ['engine 0', 'engine 0', 'engine 1'],
    )
    assert.deepEqual([sent, forgotten, codeOf(end())], [[0, 0, 1], ['engine 0'], 'ended'])
  })
})
