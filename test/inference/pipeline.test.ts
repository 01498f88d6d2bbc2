import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ApiError, CallerLeft } from '../../src/shared/errors.ts'
import type { AnswerHead, EngineHeaders, EngineRequest, Job, StreamRelay, WholeAnswer } from '../../src/engines/job.ts'
import type { RequestRow } from '../../src/ledger/rows.ts'
import { freeRates, noUsage, type Usage } from '../../src/billing/rating/rating.ts'
import { IDLE_MS } from '../../src/inference/pipeline/streamed-answer.ts'
import type { PipelineParts } from '../../src/inference/pipeline/parts.ts'
import { createPipeline } from '../../src/inference/pipeline/pipeline.ts'
import type { Deployment } from '../../src/catalog/model.ts'
import type { Caller } from '../../src/workspaces/workspace.ts'
import type { LaneArrival, Decision, Ticket } from '../../src/queue/admission.ts'
import type { CallEnd, EngineCall } from '../../src/engines/engine.ts'
import { untraced } from '../../src/server/incoming-request.ts'
import type { Reply } from '../../src/server/reply.ts'
import { turn } from '../support/hand-clock.ts'

/** One request at a time, through ports that the test plays. test/simulation/pipeline has the random orders of events. */

const call: EngineRequest = { path: '/x', contentType: 'text/plain', body: Buffer.from('0123456789') }
const usage: Usage = { ...noUsage, inputTokens: 4, outputTokens: 2 }
const ENDED: CallEnd = { kind: 'ended' }

interface Plan {
  readonly answer?: Job['answer']
  readonly calls?: readonly EngineRequest[]
  readonly job?: Partial<Pick<Job, 'prompt' | 'deployment'>>
  /** What the engine does in each of its calls. */
  readonly engine?: readonly ((call: EngineCall) => CallEnd | Promise<CallEnd>)[]
  readonly decision?: Decision | 'waits'
  /** Those of the first entries, if they differ. */
  readonly decisions?: readonly (Decision | 'waits')[]
  readonly isKeptTooLate?: boolean
  /** The versions of the price, each time that it is asked for. */
  readonly prices?: readonly number[]
  readonly tier?: Job['tier']
  readonly heldInputTokens?: number
  readonly maxTokens?: number
  /** Of an audio file, from which the input tokens are not known. */
  readonly audioMs?: number
  /** The limit has no room for more than is reserved. */
  readonly isAtLimit?: boolean
  readonly note?: () => void
  readonly settle?: () => Promise<void>
  readonly isGone?: boolean
  /** From 0 to 1. */
  readonly chance?: number
  /** The caller does not read. */
  readonly isSlow?: boolean
}

const plain: WholeAnswer = {
  kind: 'whole',
  read: async () => ({ usage, outputBytes: () => 0, render: () => 'rendered' }),
}

function stage(plan: Plan = {}) {
  const log: string[] = []
  const rows: RequestRow[] = []
  const late: (RequestRow | undefined)[] = []
  const past: RequestRow[] = []
  let now = 5_000_500
  /** What runs later, with its delay. */
  const timers: [number, () => void][] = []
  /** The cached tokens that the choice of an address learned of. */
  const learned: number[] = []
  let gone: (() => void)[] = []
  const state = {
    isGone: plan.isGone ?? false,
    isCut: false,
    decided: (_decision: Decision): void => {},
    preempt: (): void => {},
    drained: () => {},
  }
  const prices = [...(plan.prices ?? [])]
  const decisions = [...(plan.decisions ?? [])]
  const counted: number[] = []
  const waits: boolean[] = []
  /** How long each call may wait for an engine that has to start. */
  const waitsLeft: (number | undefined)[] = []
  const scripts = [...(plan.engine ?? [() => ENDED])]
  const parts: PipelineParts = {
    clock: {
      now: () => now,
      monotonic: () => now,
      after(ms, callback) {
        timers.push([ms, callback])
        return () => {}
      },
    },
    random: () => plan.chance ?? 0.5,
    engineOf: () => ({
      usable: () => true,
      addresses: () => [],
      retain: () => () => void log.push('let go'),
      run(given) {
        waitsLeft.push(given.maxWaitMs)
        const ended = Promise.resolve(scripts.shift()?.(given) ?? assert.fail('one call too many'))
        log.push(`call ${given.path}`)
        return {
          ended,
          isWithEngine: () => true,
          learn: (cachedTokens) => void learned.push(cachedTokens),
          abort: () => log.push('abort'),
          pause: () => log.push('pause'),
          resume: () => log.push('resume'),
        }
      },
      close: async () => {},
    }),
    admission: {
      enter({ lane, cost, batch }: LaneArrival, decided: (decision: Decision, ticket: Ticket) => void) {
        log.push(`enter ${lane} ${cost}${batch ? ` batch ${batch.maxWaitMs}` : ''}`)
        const ticket = { leave: () => void log.push('leave'), keep: () => !plan.isKeptTooLate }
        state.decided = (decision) => decided(decision, ticket)
        state.preempt = () => batch?.preempted()
        const decision = decisions.shift() ?? plan.decision ?? { kind: 'admitted', waitMs: 12.4 }
        if (decision !== 'waits') state.decided(decision)
        return ticket
      },
    } as unknown as PipelineParts['admission'],
    spending: {
      async hold(_workspace, most) {
        log.push(`hold ${most}`)
        return {
          async raise(amount) {
            log.push(`raise ${amount}`)
            if (plan.isAtLimit) throw new Error('the limit is reached')
          },
          settle: (amount, at) => void log.push(`spend ${amount} ${at ?? 'now'}`),
        }
      },
    },
    ledger: {
      note: () => plan.note?.(),
      async settle(row: RequestRow, later?: () => RequestRow) {
        rows.push(row)
        late.push(later?.())
        await plan.settle?.()
      },
    } as unknown as PipelineParts['ledger'],
    priceOf: (_deployment, _model, _workspace, kind) => ({
      version: prices.shift() ?? 1,
      rates: { ...freeRates, inputPerToken: kind === 'flex' ? 1n : 3n, outputPerToken: kind === 'flex' ? 2n : 5n },
    }),
    admitted: (_job, waitMs) => void log.push(`admitted ${waitMs}`),
    settled: () => void log.push('settled'),
    pastLimit: (row) => void past.push(row),
    contradicted: (_job, count) => void log.push(`contradicted ${count}`),
    cacheUsed() {},
  }
  const reply: Reply = {
    isOnRecord: false,
    setWaiting: (isWaiting) => void waits.push(isWaiting),
    trace: untraced('', {}),
    requestId: 'r',
    get isGone() {
      return state.isGone
    },
    get isCut() {
      return state.isCut
    },
    onGone(listener) {
      log.push('watch')
      gone.push(listener)
      return () => {
        gone = gone.filter((it) => it !== listener)
      }
    },
    countTokens: (tokens) => void counted.push(tokens),
    holdAnswer: (bytes) => void log.push(`collect ${bytes}`),
    openAnswer: (type, headers) => void log.push(`open ${type} ${JSON.stringify(headers)}`),
    sendAnswer: (type, body, headers) => void log.push(`send ${type} ${String(body)} ${JSON.stringify(headers)}`),
    openStream: (headers) => void log.push(`stream ${JSON.stringify(headers)}`),
    write: (piece) => log.push(`write ${String(piece)}`) > 0 && !plan.isSlow,
    onDrain: (drained) => void (state.drained = drained),
    end: (text) => void log.push(`end ${text}`),
  }
  const job = {
    tier: plan.tier ?? 'default',
    endpoint: '/x',
    model: { id: 'a/b' },
    deployment: {
      lane: 'a/b',
      limits: { maxWaitMs: 77, maxFlexWaitMs: 5000, tokenBudget: 800, batch: { maxShare: 0.5 } },
    },
    cost: 9,
    maxTokens: plan.maxTokens ?? 10,
    maxInputTokens: 1000,
    heldInputTokens: plan.heldInputTokens ?? 100,
    likelyInputTokens: plan.audioMs === undefined ? 7 : 0,
    media: plan.audioMs === undefined ? undefined : { images: 0, audioMs: plan.audioMs },
    calls: plan.calls ?? [call],
    answer: plan.answer ?? plain,
    ...plan.job,
  } as unknown as Job
  return {
    log,
    rows,
    late,
    past,
    counted,
    timers,
    waits,
    waitsLeft,
    reply,
    learned,
    state,
    watchers: () => gone.length,
    pass: (ms: number) => void (now += ms),
    leave() {
      state.isGone = true
      for (const listener of gone) listener()
    },
    run: () => createPipeline(parts)(job, { workspace: { id: 'ws' }, keyId: 'key' } as Caller, reply),
  }
}

describe('a request that enters a lane', () => {
  it('goes no further if its caller has disconnected, and its reservation is freed', async () => {
    const { run, log } = stage({ isGone: true })
    await assert.rejects(run(), CallerLeft)
    assert.deepEqual(log, ['hold 350', 'spend 0 now', 'let go'])
  })

  it('watches its caller only while it waits, and leaves the queue when the caller disconnects', async () => {
    const once = stage()
    await once.run()
    assert.deepEqual(once.log.slice(0, 5), ['hold 350', 'enter a/b 9', 'admitted 12', 'call /x', 'watch'])
    const { run, log, leave, watchers } = stage({ decision: 'waits' })
    const left = assert.rejects(run(), CallerLeft)
    await turn()
    assert.equal(watchers(), 1)
    leave()
    await left
    assert.deepEqual(log, ['hold 350', 'enter a/b 9', 'watch', 'leave', 'spend 0 now', 'let go'])
    const admitted = stage({ decision: 'waits' })
    const running = admitted.run()
    await turn()
    admitted.state.decided({ kind: 'admitted', waitMs: 0 })
    assert.equal(admitted.watchers(), 0)
    await running
  })

  it('is on record once its intent is noted, and only then', async () => {
    const { run, reply } = stage({ prices: [1, 2], note: () => assert.equal(reply.isOnRecord, false) })
    await run()
    assert.equal(reply.isOnRecord, true)
    const refused = stage({
      note() {
        throw new Error('the disk is full')
      },
    })
    await assert.rejects(refused.run(), { code: 'service_unavailable' })
    assert.equal(refused.reply.isOnRecord, false, 'it is listed as refused')
  })

  it('may wait for an engine to start for the rest of its time, and waits of other tiers are no measure of the lane', async () => {
    const online = stage()
    await online.run()
    assert.deepEqual(online.waitsLeft, [77 - 12.4])
    const flex = stage({ tier: 'flex' })
    await flex.run()
    assert.deepEqual(flex.waitsLeft, [5000 - 12.4])
    const measured = [online, flex].map(({ log }) => log.filter((it) => it.startsWith('admitted')))
    assert.deepEqual(measured, [['admitted 12'], []])
  })

  it('is refused with the reason', async () => {
    for (const [kind, code, message] of [
      ['queue_full', 'queue_full', /queue of a\/b is full/],
      ['overloaded', 'model_overloaded', /waited 77 ms/],
      ['closed', 'service_unavailable', /shutting down/],
      ['unavailable', 'service_unavailable', /cannot be coordinated/],
    ] as const) {
      const { run } = stage({ decision: { kind } })
      await assert.rejects(run(), { code, message })
    }
    const { run } = stage({ decision: { kind: 'queue_full' } })
    await assert.rejects(run(), { retryAfter: 5, param: 'model' })
    const large = { decision: { kind: 'too_large' } } as const
    await assert.rejects(stage(large).run(), { code: 'token_budget_exceeded', message: /more than the 800 that/ })
    const shared = stage({ ...large, tier: 'flex' })
    await assert.rejects(shared.run(), { code: 'token_budget_exceeded', message: /more than the 400 that/ })
  })

  it('may try again after two to eight seconds, by chance, if the queue of its tier is full', async () => {
    for (const tier of ['default', 'flex'] as const) {
      for (const [chance, retryAfter] of [
        [0, 2],
        [0.99, 8],
      ] as const) {
        await assert.rejects(stage({ tier, chance, decision: { kind: 'queue_full' } }).run(), { retryAfter })
      }
    }
    const crowded = stage({ chance: 0, decision: { kind: 'workspace_queue_full' } })
    await assert.rejects(crowded.run(), { retryAfter: 2 })
  })

  it('reserves more only if the price has changed meanwhile', async () => {
    const same = stage({ prices: [1, 1] })
    await same.run()
    assert.ok(!same.log.some((it) => it.startsWith('raise')))
    const changed = stage({ prices: [1, 2] })
    const row = await changed.run()
    assert.ok(changed.log.includes('raise 350'))
    assert.equal(row.priceVersion, 2)
  })

  it('holds and costs the price of its tier, the one in force when it is admitted', async () => {
    const flex = stage({ tier: 'flex', prices: [1, 2] })
    const row = await flex.run()
    assert.ok(flex.log.includes('hold 120') && flex.log.includes('raise 120'))
    assert.deepEqual([row.tier, row.priceVersion, row.amount], ['flex', 2, 8n])
    assert.ok(flex.log.some((it) => it.startsWith('spend 8 ')))
    const usual = await stage().run()
    assert.deepEqual([usual.tier, usual.amount], ['default', 22n])
  })
})

it('the cache keys of a prompt differ for each adapter, also where workspaces share their prefixes', async () => {
  const prompt = {
    blocks: [{ first: 1, second: 2, own: 3, end: 3, message: 0 }],
    characters: 3,
    opening: 1,
    previous: 0,
  }
  const keysOf = async (adapter: string | undefined, engine: object): Promise<unknown> => {
    let keys: readonly number[] | undefined
    const deployment = {
      lane: 'a/b',
      limits: {},
      engine,
      adapter: adapter && { name: adapter },
    } as unknown as Deployment
    const { run } = stage({ job: { prompt, deployment }, engine: [(given) => ((keys = given.prompt?.keys), ENDED)] })
    await run()
    return keys?.join()
  }
  for (const engine of [{}, { sharePrefixes: true }]) {
    const keys = [await keysOf(undefined, engine), await keysOf('one', engine), await keysOf('two', engine)]
    assert.equal(new Set(keys).size, 3)
  }
})

describe('a request that gives way to online requests', () => {
  const admitted: Decision = { kind: 'admitted', waitMs: 1000 }

  /** An engine call that the test ends as aborted. */
  function preemptible() {
    const { promise, resolve } = Promise.withResolvers<CallEnd>()
    return { call: () => promise, abort: () => resolve({ kind: 'aborted' }) }
  }

  it('is aborted, keeps its place until the engine is done, and runs again with one row', async () => {
    const first = preemptible()
    let notes = 0
    const { run, log, rows, waits, waitsLeft, state } = stage({
      tier: 'batch',
      engine: [first.call, () => ENDED],
      prices: [1, 1, 2],
      note: () => void notes++,
    })
    const running = run()
    await turn()
    state.preempt()
    assert.deepEqual(log, ['hold 350', 'enter a/b 9 batch Infinity', 'call /x', 'watch', 'abort'])
    first.abort()
    const row = await running
    assert.deepEqual(log.slice(5, 9), ['leave', 'spend 0 now', 'hold 350', 'enter a/b 9 batch Infinity'])
    assert.deepEqual(rows, [row])
    assert.deepEqual([row.outcome, row.priceVersion, row.queueWaitMs], ['completed', 1, 24])
    assert.deepEqual(waits, [false, true, false])
    assert.deepEqual(waitsLeft, [Infinity, Infinity])
    assert.equal(notes, 1)
  })

  it('that had its whole stream when it was aborted waits again only when its engine call has ended', async () => {
    const first = preemptible()
    const { run, log, state } = stage({
      tier: 'batch',
      isKeptTooLate: true,
      decisions: [admitted, { kind: 'queue_full' }],
      answer: { kind: 'streamed', relay: () => relayOf(usage) },
      engine: [
        ({ receiver }) => {
          state.preempt()
          receiver.start({})
          receiver.data(Buffer.from('+.'))
          return first.call()
        },
      ],
    })
    const refused = assert.rejects(run(), { code: 'no_idle_capacity' })
    await turn()
    assert.ok(!log.includes('spend 0 now'))
    first.abort()
    await refused
    assert.ok(log.includes('spend 0 now'))
  })

  it('makes no call if it has to give way before the first one', async () => {
    const { run, log, state } = stage({ tier: 'batch', decisions: ['waits', 'waits'] })
    const running = run()
    await turn()
    state.decided(admitted)
    state.preempt()
    await turn()
    assert.ok(!log.includes('call /x'))
    state.decided(admitted)
    await running
    assert.equal(log.filter((it) => it === 'call /x').length, 1)
  })

  it('waits for the rest of its maximum wait, and is then refused at no cost', async () => {
    const first = preemptible()
    const { run, log, rows, state } = stage({
      tier: 'flex',
      engine: [first.call],
      decisions: [admitted, { kind: 'overloaded' }],
    })
    const refused = assert.rejects(run(), { code: 'no_idle_capacity', message: /no idle capacity for 5000 ms/ })
    await turn()
    state.preempt()
    first.abort()
    await refused
    assert.ok(log.includes('enter a/b 9 batch 5000') && log.includes('enter a/b 9 batch 4000'))
    assert.deepEqual(
      rows.map(({ outcome, errorCode, amount }) => [outcome, errorCode, amount]),
      [['engine_failed', 'no_idle_capacity', 0n]],
    )
  })

  it('may wait for an engine to start for the rest of its maximum wait', async () => {
    const first = preemptible()
    const { run, waitsLeft, state } = stage({ tier: 'flex', engine: [first.call, () => ENDED], decisions: [admitted] })
    const running = run()
    await turn()
    state.preempt()
    first.abort()
    await running
    assert.deepEqual(waitsLeft, [5000 - 1000, 5000 - 1000 - 12.4])
  })

  it('costs nothing if its caller leaves while it waits again', async () => {
    const first = preemptible()
    const { run, rows, state, leave } = stage({ tier: 'flex', engine: [first.call], decisions: [admitted, 'waits'] })
    const left = assert.rejects(run(), CallerLeft)
    await turn()
    state.preempt()
    first.abort()
    await turn()
    leave()
    await left
    assert.deepEqual(
      rows.map(({ outcome, amount }) => [outcome, amount]),
      [['caller_left', 0n]],
    )
  })

  it('sends nothing of an answer that came too late to be kept', async () => {
    const { run, log, rows, state } = stage({
      tier: 'flex',
      isKeptTooLate: true,
      decisions: [admitted, { kind: 'queue_full' }],
      answer: {
        ...plain,
        passThrough: () => ({ push: (chunk) => chunk, end: () => assert.fail('the answer is not used') }),
      },
      engine: [
        ({ receiver }) => {
          state.preempt()
          receiver.start({})
          receiver.data(Buffer.from('{}'))
          return { kind: 'aborted' }
        },
      ],
    })
    await assert.rejects(run(), { code: 'no_idle_capacity', param: 'service_tier' })
    assert.ok(!log.some((it) => it.startsWith('open') || it.startsWith('write')))
    assert.equal(rows.length, 1)
  })
})

describe('a whole answer', () => {
  it('is settled with its usage, then sent, and its place is free as soon as the engine is done', async () => {
    const { run, log, rows, late, pass, past, counted } = stage({
      engine: [
        ({ receiver }) => {
          pass(30)
          receiver.start({ 'content-length': '2' })
          receiver.data(Buffer.from('{}'))
          pass(70)
          return ENDED
        },
      ],
    })
    const row = await run()
    assert.deepEqual(log.slice(3), [
      'collect 2',
      'call /x',
      'watch',
      'leave',
      'settled',
      'spend 22 5000600',
      'send application/json rendered {"X-Queue-Wait-Ms":"12"}',
      'spend 0 now',
      'let go',
    ])
    assert.deepEqual(rows, [row])
    const { outcome, httpStatus, errorCode, amount, queueWaitMs, firstTokenMs, durationMs, startedAt, settledAt } = row
    assert.deepEqual([outcome, httpStatus, errorCode, amount], ['completed', 200, null, 22n])
    assert.deepEqual([queueWaitMs, firstTokenMs, durationMs], [12, 30, 100])
    assert.deepEqual([startedAt, settledAt], [5_000_500, 5_000_600])
    assert.deepEqual(past, [])
    assert.deepEqual(counted, [row.inputTokens + row.outputTokens])
    const { outcome: ending, httpStatus: status, amount: cost, inputTokens } = late[0] ?? assert.fail()
    assert.deepEqual([ending, status, cost, inputTokens], ['withheld', 503, 0n, 0])
  })

  it('of several calls has its first token when the first one begins', async () => {
    const { run, rows, pass } = stage({
      calls: [call, call],
      engine: [30, 70].map((ms) => ({ receiver }: EngineCall) => {
        pass(ms)
        receiver.start({})
        return ENDED
      }),
    })
    await run()
    assert.deepEqual([rows[0]?.firstTokenMs, rows[0]?.durationMs], [30, 100])
  })

  it('updates the choice of an address only if one call was counted by the engine', async () => {
    const counted: WholeAnswer = {
      kind: 'whole',
      read: async () => ({ usage: { ...usage, cachedInputTokens: 3 }, outputBytes: () => 0, render: () => '' }),
    }
    const estimated: WholeAnswer = {
      kind: 'whole',
      read: async () => ({ usage: undefined, outputBytes: () => 8, render: () => '' }),
    }
    for (const [answer, calls, expected] of [
      [counted, [call], [3]],
      [counted, [call, call], []],
      [estimated, [call], []],
    ] as const) {
      const { run, learned } = stage({ answer, calls, engine: calls.map(() => () => ENDED) })
      await run()
      assert.deepEqual(learned, expected)
    }
  })

  it('that was estimated and arrives too late is not recorded as estimated', async () => {
    const answer: WholeAnswer = {
      ...plain,
      read: async () => ({ usage: undefined, outputBytes: () => 100, render: () => '' }),
    }
    const { run, rows, late } = stage({ answer })
    await run()
    assert.deepEqual([rows[0]?.estimated, late[0]?.estimated, late[0]?.outputTokens], [true, false, 0])
  })

  it('has the head of its request', async () => {
    const heads: AnswerHead[] = []
    const answer: WholeAnswer = {
      ...plain,
      read: async (_bodies, head) => {
        heads.push(head)
        return { usage, outputBytes: () => 0, render: () => '' }
      },
    }
    await stage({ answer }).run()
    await stage({ answer, tier: 'flex' }).run()
    const head = { id: 'r', created: 5000, model: 'a/b' }
    assert.deepEqual(heads, [head, { ...head, tier: 'flex' }])
  })

  it('that passes through is opened once, and ends with the headers of the engine', async () => {
    const ends: EngineHeaders[] = []
    const answer: WholeAnswer = {
      ...plain,
      passThrough: () => ({
        push: (chunk) => chunk,
        end: (headers) => {
          ends.push(headers)
          return { usage, outputBytes: () => 0, render: () => 'the end' }
        },
      }),
    }
    const { run, log, late } = stage({
      answer,
      engine: [
        ({ receiver }) => {
          receiver.start({ server: 'x' })
          receiver.data(Buffer.from('one'))
          receiver.data(Buffer.from('two'))
          return ENDED
        },
      ],
    })
    await run()
    assert.deepEqual(
      log.filter((it) => /^(open|write|send|collect)/.test(it)),
      [
        'open application/json {"X-Queue-Wait-Ms":"12"}',
        'write one',
        'write two',
        'send application/json the end {"X-Queue-Wait-Ms":"12"}',
      ],
    )
    assert.deepEqual(ends, [{ server: 'x' }])
    assert.equal(late[0]?.httpStatus, 200, 'its caller has seen that')
  })

  it('counts all that is collected of it to the memory of its workspace', async () => {
    const { run, log } = stage({
      engine: [
        ({ receiver }) => {
          for (const chunk of ['one', 'two']) receiver.data(Buffer.from(chunk))
          return ENDED
        },
      ],
    })
    await run()
    assert.deepEqual(
      log.filter((it) => it.startsWith('collect')),
      ['collect 3', 'collect 6'],
    )
  })

  it('may have 256 MiB over all calls, and not a byte more', async () => {
    const mebibyte = Buffer.alloc(2 ** 20)
    const quiet: WholeAnswer = {
      ...plain,
      passThrough: () => ({
        push: () => Buffer.alloc(0),
        end: () => ({ usage, outputBytes: () => 0, render: () => '' }),
      }),
    }
    const sent = async (extra: number): Promise<void> => {
      const { run } = stage({
        answer: quiet,
        engine: [
          ({ receiver }) => {
            for (let index = 0; index < 256; index++) receiver.data(mebibyte)
            if (extra > 0) receiver.data(Buffer.alloc(extra))
            return ENDED
          },
        ],
      })
      await run()
    }
    await sent(0)
    await assert.rejects(sent(1), RangeError)
  })

  it('that cannot be recorded is withheld, and counts against no limit', async () => {
    const { run, log, counted } = stage({ settle: () => Promise.reject(new Error('the disk is full')) })
    await assert.rejects(run(), { code: 'service_unavailable', message: /cannot be recorded/ })
    assert.ok(log.includes('spend 0 5000500') && !log.some((it) => it.startsWith('send')))
    assert.deepEqual(counted, [])
  })

  it('is retried as the fallback defines if the engine refused it, but not once it has started', async () => {
    const error = new ApiError('upstream_error', 'no')
    const fallback = (): EngineRequest => ({ ...call, path: '/other' })
    const failed = (started: boolean) => (): CallEnd => ({ kind: 'failed', error, started })
    const calls = [{ ...call, fallback }]
    const again = stage({ calls, engine: [failed(false), () => ENDED] })
    await again.run()
    assert.ok(again.log.includes('call /other'))
    const begun = stage({ calls, engine: [failed(true)] })
    await assert.rejects(begun.run(), error)
    const { outcome, httpStatus, errorCode, amount } = begun.rows[0] ?? assert.fail()
    assert.deepEqual([outcome, httpStatus, errorCode, amount], ['engine_failed', 502, 'upstream_error', 0n])
  })

  it('whose caller has disconnected is billed if the engine had all of it, or was stopped, and otherwise fails', async () => {
    const whole = stage({
      engine: [
        () => {
          whole.state.isGone = true
          return ENDED
        },
      ],
    })
    await assert.rejects(whole.run(), CallerLeft)
    assert.deepEqual([whole.rows[0]?.outcome, whole.rows[0]?.amount], ['caller_left', 22n])
    const stopped = stage({
      engine: [
        () => {
          stopped.state.isGone = true
          return { kind: 'aborted' }
        },
      ],
    })
    await assert.rejects(stopped.run(), CallerLeft)
    const { outcome, httpStatus, inputTokens, outputTokens, estimated } = stopped.rows[0] ?? assert.fail()
    assert.deepEqual([outcome, httpStatus, inputTokens, outputTokens, estimated], ['caller_left', 499, 7, 0, true])
    const audio = stage({
      audioMs: 1500,
      engine: [
        () => {
          audio.state.isGone = true
          return { kind: 'aborted' }
        },
      ],
    })
    await assert.rejects(audio.run(), CallerLeft)
    const audioRow = audio.rows[0] ?? assert.fail()
    assert.deepEqual([audioRow.inputTokens, audioRow.audioMs, audioRow.estimated], [0, 1500, false])
    const repeated = stage({
      calls: [call, { ...call, repeatsInput: true }],
      engine: [
        () => {
          repeated.state.isGone = true
          return { kind: 'aborted' }
        },
      ],
    })
    await assert.rejects(repeated.run(), CallerLeft)
    assert.equal(repeated.rows[0]?.inputTokens, 7, 'the whole input has been sent, once')
    const cut = stage({
      engine: [
        () => {
          Object.assign(cut.state, { isGone: true, isCut: true })
          return { kind: 'aborted' }
        },
      ],
    })
    await assert.rejects(cut.run(), CallerLeft)
    assert.deepEqual([cut.rows[0]?.outcome, cut.rows[0]?.amount], ['interrupted', 0n])
    const broken = stage({
      engine: [
        () => {
          broken.state.isGone = true
          return { kind: 'failed', error: new ApiError('upstream_error', 'no'), started: true }
        },
      ],
    })
    await assert.rejects(broken.run(), { code: 'upstream_error' })
    assert.equal(broken.rows[0]?.outcome, 'engine_failed')
  })

  it('whose count is impossible is cut and reported', async () => {
    const { run, past } = stage({ maxTokens: 1 })
    const row = await run()
    assert.deepEqual([row.outputTokens, row.estimated, past.length], [1, true, 1])
  })

  it('with more input than is reserved is billed up to the reservation if the limit has no room, and marked', async () => {
    const { run, past, log } = stage({ heldInputTokens: 3, isAtLimit: true })
    const row = await run()
    assert.deepEqual([row.inputTokens, row.outputTokens, row.estimated, past], [3, 2, true, [row]])
    assert.ok(log.includes('spend 19 5000500'))
  })

  it('with more input than is reserved has its reservation raised, and one with as much has not', async () => {
    const { run, log } = stage({ heldInputTokens: 3 })
    const row = await run()
    assert.ok(log.includes('raise 22'))
    assert.equal(row.inputTokens, 4)
    const enough = stage({ heldInputTokens: 4 })
    await enough.run()
    assert.ok(!enough.log.includes('raise 22'))
  })
})

/** A stream of text: `+` is a delta, `!` breaks it, `.` completes it. */
function relayOf(reported: Usage | undefined): StreamRelay {
  let text = ''
  const count = (mark: string): number => text.split(mark).length - 1
  return {
    push(chunk) {
      text += chunk.toString()
      return chunk.toString()
    },
    isDone: () => count('.') > 0,
    isBroken: () => count('!') > 0,
    wrongEvent: () => undefined,
    next: () => true,
    isComplete: () => count('.') > 0,
    isPastLimit: () => false,
    reportedUsage: () => reported,
    deltaCount: () => count('+'),
    deltasSinceReport: () => 0,
    closing: () => 'closing',
    failure: ({ code }) => `failure ${code}`,
  }
}

it('an engine is paused while the caller does not read, and only then', async () => {
  const relay = (): StreamRelay => relayOf(usage)
  const passThrough = () => ({
    push: (chunk: Buffer) => chunk,
    end: () => ({ usage, outputBytes: () => 0, render: () => '' }),
  })
  for (const answer of [{ kind: 'streamed', relay } as const, { ...plain, passThrough }]) {
    for (const isSlow of [true, false]) {
      const { run, log, state } = stage({
        answer,
        isSlow,
        engine: [
          async ({ receiver }) => {
            await turn()
            receiver.start({})
            receiver.data(Buffer.from('+.'))
            state.drained()
            return ENDED
          },
        ],
      })
      await run()
      assert.deepEqual(
        log.filter((it) => it === 'pause' || it === 'resume'),
        isSlow ? ['pause', 'resume'] : [],
      )
    }
  }
})

describe('a streamed answer', () => {
  const streamed = (reported: Usage | null = usage): Job['answer'] => ({
    kind: 'streamed',
    relay: () => relayOf(reported ?? undefined),
  })
  const says =
    (...chunks: readonly string[]) =>
    ({ receiver }: EngineCall): CallEnd => {
      receiver.start({})
      for (const chunk of chunks) receiver.data(Buffer.from(chunk))
      return ENDED
    }

  it('is opened with its first text, and its first token is the first delta', async () => {
    const { run, log, pass } = stage({
      answer: streamed(),
      engine: [
        ({ receiver }) => {
          receiver.start({})
          receiver.data(Buffer.from('role'))
          pass(40)
          receiver.data(Buffer.from('+'))
          pass(40)
          receiver.data(Buffer.from('+.'))
          receiver.data(Buffer.from('ignored'))
          return ENDED
        },
      ],
    })
    const row = await run()
    assert.deepEqual([row.outcome, row.firstTokenMs, row.amount], ['completed', 40, 22n])
    assert.deepEqual(
      log.filter((it) => /^(stream|write|end|settled|leave)/.test(it)),
      ['stream {"X-Queue-Wait-Ms":"12"}', 'write role', 'write +', 'write +.', 'leave', 'settled', 'end closing'],
    )
  })

  it('that breaks off is billed if it had output, and failed if it had none', async () => {
    const broke = stage({ answer: streamed(), engine: [says('+!')] })
    const row = await broke.run()
    assert.deepEqual([row.outcome, row.httpStatus, row.errorCode], ['engine_broke', 200, 'upstream_error'])
    assert.equal(row.amount, 22n)
    assert.equal(
      broke.log.find((it) => it.startsWith('end')),
      'end failure upstream_error',
    )
    const silent = stage({ answer: streamed(), engine: [says('role!')] })
    const failed = await silent.run()
    assert.deepEqual([failed.outcome, failed.httpStatus, failed.amount], ['engine_failed', 200, 0n])
  })

  it('whose engine goes on past the limit ends at once, and so does the call', async () => {
    const { promise, resolve } = Promise.withResolvers<CallEnd>()
    const { run, log } = stage({
      answer: { kind: 'streamed', relay: () => ({ ...relayOf(usage), isPastLimit: () => true }) },
      engine: [
        ({ receiver }) => {
          receiver.start({})
          receiver.data(Buffer.from('+.'))
          return promise
        },
      ],
    })
    await run()
    assert.ok(log.includes('abort'))
    resolve({ kind: 'aborted' })
  })

  it('of several calls begins each one only when the one before has ended', async () => {
    const first = Promise.withResolvers<CallEnd>()
    const { run, log } = stage({
      answer: streamed(),
      calls: [call, { ...call, path: '/next' }],
      engine: [
        ({ receiver }) => {
          receiver.start({})
          receiver.data(Buffer.from('+.'))
          return first.promise
        },
        () => ENDED,
      ],
    })
    const running = run()
    await turn()
    assert.ok(!log.includes('call /next'))
    first.resolve(ENDED)
    await running
    assert.ok(log.includes('call /next'))
  })

  it('that is empty is requested again only when its first call has ended, so that it has one place', async () => {
    const first = Promise.withResolvers<CallEnd>()
    const { run, log } = stage({
      answer: { kind: 'streamed', relay: () => ({ ...relayOf(undefined), push: () => '', isDone: () => true }) },
      calls: [{ ...call, ifSilent: { ...call, path: '/why' } }],
      engine: [
        ({ receiver }) => {
          receiver.start({})
          receiver.data(Buffer.from('[DONE]'))
          return first.promise
        },
        () => ENDED,
      ],
    })
    const refused = assert.rejects(run(), { code: 'upstream_error' })
    await turn()
    assert.ok(!log.includes('call /why'))
    first.resolve(ENDED)
    await refused
    assert.ok(log.includes('call /why'))
  })

  it('that is empty is requested again for the reason, unless something else explains it', async () => {
    const calls = [{ ...call, ifSilent: { ...call, path: '/why' } }]
    const refused = new ApiError('invalid_value', 'too long')
    const why = stage({
      answer: streamed(),
      calls,
      engine: [says(), () => ({ kind: 'failed', error: refused, started: false })],
    })
    await assert.rejects(why.run(), refused)
    assert.equal(why.rows[0]?.errorCode, 'invalid_value')
    const unclear = stage({
      answer: streamed(),
      calls,
      engine: [says(), () => ({ kind: 'failed', error: new ApiError('upstream_error', 'x'), started: false })],
    })
    await assert.rejects(unclear.run(), { message: 'The engine gave no usable answer.' })
    const left = stage({
      answer: streamed(null),
      calls,
      engine: [
        says(),
        () => {
          left.state.isGone = true
          return { kind: 'aborted' }
        },
      ],
    })
    await assert.rejects(left.run(), CallerLeft)
    assert.equal(left.rows[0]?.outcome, 'caller_left')
    const failed = stage({
      answer: streamed(),
      calls,
      engine: [() => ({ kind: 'failed', error: refused, started: false })],
    })
    await assert.rejects(failed.run(), refused)
    for (const text of ['+.', '!']) {
      const spoken = stage({ answer: streamed(), calls, engine: [says(text)] })
      await spoken.run()
      assert.ok(!spoken.log.includes('call /why'), text)
    }
  })

  it('whose caller disconnected before the first token is billed for the input that was sent', async () => {
    for (const [reported, chunk, inputTokens, estimated] of [
      [null, 'role', 7, true],
      [usage, 'role', 4, false],
      [null, '+', 7, true],
    ] as const) {
      const { run, state, rows } = stage({
        answer: streamed(reported),
        engine: [
          ({ receiver }) => {
            receiver.start({})
            receiver.data(Buffer.from(chunk))
            state.isGone = true
            return { kind: 'aborted' }
          },
        ],
      })
      await assert.rejects(run(), CallerLeft)
      const row = rows[0] ?? assert.fail()
      assert.deepEqual([row.outcome, row.inputTokens, row.estimated], ['caller_left', inputTokens, estimated], chunk)
      assert.equal(row.outputTokens, chunk === '+' ? 1 : (reported?.outputTokens ?? 0))
    }
  })

  it('whose caller disconnected when the engine had sent everything is billed', async () => {
    const { run, state, rows } = stage({
      answer: streamed(),
      engine: [
        (given) => {
          state.isGone = true
          return says('+.')(given)
        },
      ],
    })
    await assert.rejects(run(), CallerLeft)
    assert.deepEqual([rows[0]?.outcome, rows[0]?.amount], ['caller_left', 22n])
  })

  it('whose engine does not end its call ends at once, and the call is aborted a second later', async () => {
    const call = Promise.withResolvers<CallEnd>()
    const { run, log, timers } = stage({
      answer: streamed(),
      engine: [
        (given) => {
          says('+.')(given)
          return call.promise
        },
      ],
    })
    await run()
    assert.deepEqual([log.includes('leave'), log.includes('abort')], [false, false])
    const [, abort] = timers.find(([ms]) => ms === 1000) ?? assert.fail('no timer')
    abort()
    assert.ok(log.includes('abort'))
    call.resolve({ kind: 'aborted' })
    await turn()
    assert.ok(log.includes('leave'))
  })

  it('is kept alive every 15 seconds', () => assert.equal(IDLE_MS, 15_000))

  it('that cannot be recorded ends with the error, and counts against the limit', async () => {
    const { run, log, counted } = stage({
      answer: streamed(),
      engine: [says('+.')],
      settle: async () => {
        throw new Error('the disk is full')
      },
    })
    await assert.rejects(run(), { code: 'service_unavailable', message: /cannot be recorded/ })
    assert.ok(log.includes('end failure service_unavailable') && log.includes('spend 22 5000500'))
    assert.equal(counted.length, 1)
  })
})
