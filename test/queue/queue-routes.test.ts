import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { LaneSettings } from '../../src/catalog/lane-settings.ts'
import type { Deployment } from '../../src/catalog/model.ts'
import type { Engine } from '../../src/engines/engine.ts'
import type { ArrivalStore, RecordedArrival } from '../../src/billing/usage/usage-store.ts'
import type { Admission, LaneLoad } from '../../src/queue/admission.ts'
import type { LiveFeed, Sample } from '../../src/queue/live.ts'
import type { LaneLimits } from '../../src/queue/lane.ts'
import { consoleLiveRoutes, type ConsoleLiveParts } from '../../src/queue/routes/console-live.ts'
import { laneLimitsRoutes } from '../../src/queue/routes/lane-limits.ts'
import { operatorLiveRoute } from '../../src/queue/routes/operator-live.ts'
import { queueStatusRoute } from '../../src/queue/routes/queue-status.ts'
import { queueRoutes } from '../../src/queue/routes/queues.ts'
import { OPERATOR, type Sessions } from '../../src/workspaces/sessions/sessions.ts'
import type { SignedIn } from '../../src/workspaces/sessions/workspace-sessions.ts'
import type { Workspace } from '../../src/workspaces/workspace.ts'
import { catalogOf } from '../support/catalog.ts'
import { ask } from '../support/route-answer.ts'

const limits = { token_budget: 1000, max_concurrent_requests: 4, max_queue_depth: 5, max_wait_ms: 6000 }
const laneLimits: LaneLimits = {
  tokenBudget: 1000,
  maxConcurrentRequests: 4,
  maxQueueDepth: 5,
  maxWaitMs: 6000,
  maxRequestsPerWorkspace: 3,
}
const serverless = { engine: { kind: 'vllm', urls: ['http://127.0.0.1:1'] }, limits }
const entry = (id: string, changes: object = {}) => ({
  id,
  categories: ['llm'],
  context_length: 100,
  serverless,
  ...changes,
})
const caller = { workspace: { id: 'ws_1', name: 'acme' } as Workspace, keyId: 'key_1' }

describe('the limits of a lane, for the operator', () => {
  async function stage() {
    const done: unknown[] = []
    const lanes = {
      setLimits: async ({ lane }: { lane: string }, set: LaneLimits) => void done.push([lane, set]),
      clearLimits: async (lane: string) => void done.push(lane),
    } as unknown as LaneSettings
    const batch = { reserve_concurrent: 2, reserve_tokens: 300, max_share: 0.5, preempt: false, max_queue_depth: 7 }
    const other = { ...serverless, limits: { ...limits, batch, flex: { max_wait_ms: 80 } } }
    const catalog = await catalogOf(entry('meta/a'), entry('meta/b', { serverless: other }))
    return { done, batch, catalog, routes: laneLimitsRoutes({ catalog, lanes }) }
  }

  it('are those in force, and those of the catalog if an operator has set others', async () => {
    const { routes, catalog, batch } = await stage()
    const of = async (lane: string) => (await ask(routes, `GET /admin/v1/queues/${lane}`)).body
    const plain = {
      lane: 'meta/a',
      limits,
      batch_limits: { reserve_concurrent: 1, reserve_tokens: 100, max_share: 1, preempt: true, max_queue_depth: 5 },
      flex: { max_wait_ms: 600_000 },
      limits_in_file: null,
    }
    assert.deepEqual(await of('meta/a'), plain)
    const set = { lane: 'meta/b', limits, batch_limits: batch, flex: { max_wait_ms: 80 }, limits_in_file: null }
    assert.deepEqual(await of('meta/b'), set)
    await catalog.change((models) =>
      models.map((it) => ({
        ...it,
        serverless: it.serverless && { ...it.serverless, limits: laneLimits, limitsInFile: it.serverless.limits },
      })),
    )
    const changed = { ...plain, limits: { ...limits, max_requests_per_workspace: 3 }, limits_in_file: limits }
    assert.deepEqual(await of('meta/a'), changed)
    await assert.rejects(of('meta/c'), { code: 'not_found', param: 'lane', message: 'There is no lane "meta/c".' })
  })

  it('are set and cleared for one lane, with the limits before on record', async () => {
    const { routes, done } = await stage()
    const before = (await ask(routes, 'GET /admin/v1/queues/meta/b')).body
    const body = { ...limits, max_requests_per_workspace: 3 }
    const set = await ask(routes, 'PUT /admin/v1/queues/meta/b', { body })
    const cleared = await ask(routes, 'DELETE /admin/v1/queues/meta/b')
    assert.deepEqual(done, [['meta/b', laneLimits], 'meta/b'])
    assert.deepEqual([set.body, cleared.body], [before, before])
    for (const wrong of [{ ...limits, token_budget: 0 }, { token_budget: 5 }])
      await assert.rejects(ask(routes, 'PUT /admin/v1/queues/meta/b', { body: wrong }), { status: 400 })
    assert.deepEqual(set.recorded, [{ action: 'setLaneLimits', subject: 'meta/b', body, state: before }])
    assert.deepEqual(cleared.recorded, [{ action: 'clearLaneLimits', subject: 'meta/b', state: before }])
  })
})

const load: LaneLoad = {
  limits: laneLimits,
  inFlightRequests: 3,
  committedTokens: 400,
  queueDepth: 2,
  batch: { inFlightRequests: 1, committedTokens: 90, queueDepth: 12 },
  oldestWaitMs: 1234.5,
}
const batchView = { in_flight_requests: 1, committed_tokens: 90, queue_depth: 12 }
const limitsView = { ...limits, max_requests_per_workspace: 3 }
const idle: LaneLoad = { ...load, batch: { inFlightRequests: 0, committedTokens: 0, queueDepth: 0 }, oldestWaitMs: 0 }

const sample: Sample = {
  id: 'start-2',
  at: 1_795_000_000_000,
  lanes: new Map([
    ['meta/a', load],
    ['meta/b', idle],
  ]),
  waits: new Map([['meta/a', { perMinute: 14.237, p50: 7, p95: 120 }]]),
  admitted: new Map([['meta/a', 31]]),
}

describe('the queues, for the operator', () => {
  const NOW = 1_795_000_000_000
  const HOUR_MS = 3_600_000

  async function stage({ samples = [], arrivals = [] }: { samples?: Sample[]; arrivals?: RecordedArrival[] } = {}) {
    const asked: object[] = []
    const store = {
      newestArrivals: async (query: object) => {
        asked.push(query)
        return arrivals
      },
    } as unknown as ArrivalStore
    const live = { since: () => samples } as unknown as LiveFeed
    const clock = { now: () => NOW, monotonic: () => 0 }
    const routes = queueRoutes({ catalog: await catalogOf(entry('meta/a')), live, store, clock })
    const simulated = async (more: object = {}, tried: object = limits) => {
      const body = { lane: 'meta/a', limits: tried, hours: 6, ...more }
      const { body: answer, recorded } = await ask(routes, 'POST /admin/v1/queues/simulate', { body })
      assert.deepEqual(recorded, [], 'nothing is changed')
      return answer
    }
    return { routes, asked, simulated }
  }

  it('are those of the last sample, or none before the first', async () => {
    const { routes } = await stage({ samples: [{ ...sample, at: 0, lanes: new Map() }, sample] })
    assert.deepEqual((await ask(routes, 'GET /admin/v1/queues')).body, {
      at: sample.at,
      lanes: [
        {
          lane: 'meta/a',
          in_flight_requests: 3,
          committed_tokens: 400,
          queue_depth: 2,
          batch: batchView,
          oldest_wait_ms: 1235,
          wait_ms_p50: 7,
          wait_ms_p95: 120,
          limits: limitsView,
        },
        {
          lane: 'meta/b',
          in_flight_requests: 3,
          committed_tokens: 400,
          queue_depth: 2,
          batch: { in_flight_requests: 0, committed_tokens: 0, queue_depth: 0 },
          oldest_wait_ms: 0,
          wait_ms_p50: null,
          wait_ms_p95: null,
          limits: limitsView,
        },
      ],
    })
    const none = await stage()
    assert.deepEqual((await ask(none.routes, 'GET /admin/v1/queues')).body, { at: NOW, lanes: [] })
  })

  /** Each takes two seconds at 50 tokens per second, and arrives half a second after the one before. */
  const arrival = (index: number): RecordedArrival => ({
    arrivedAt: NOW - 10_000 + index * 500,
    inputTokens: 1000,
    maxTokens: 200,
    outputTokens: 100,
    durationMs: 2500,
    firstTokenMs: 500,
  })

  it('can be simulated with other limits, on the newest requests in the order of time', async () => {
    const arrivals = [2, 1, 0].map(arrival)
    const { simulated, asked } = await stage({ arrivals })
    const tried = { token_budget: 10_000, max_concurrent_requests: 1, max_queue_depth: 1, max_wait_ms: 60_000 }
    const none = { queue_full: 0, overloaded: 0, too_large: 0 }
    assert.deepEqual(await simulated({}, tried), {
      engine: { tokens_per_second: 50, prefill_tokens_per_second: 2000, source: 'recorded' },
      // Each needs 1200 tokens, more than the budget in force.
      current: { limits, requests: 3, admitted: 0, ...none, too_large: 3, wait_ms: null, answer_ms: null },
      proposed: {
        limits: tried,
        requests: 3,
        admitted: 2,
        ...none,
        queue_full: 1,
        wait_ms: { p50: 2000, p95: 2000, max: 2000 },
        answer_ms: { p50: 4500, p95: 4500, max: 4500 },
      },
    })
    assert.deepEqual(asked, [{ lane: 'meta/a', from: NOW - 6 * HOUR_MS, to: NOW, limit: 5000 }])
    await assert.rejects(simulated({ lane: 'meta/b' }), { code: 'not_found' })
  })

  it('are simulated at the speed that is asked for, that is recorded, or a usual one', async () => {
    const engineOf = async (answers: RecordedArrival[], more: object = {}) =>
      ((await (await stage({ arrivals: answers })).simulated(more)) as { engine: object }).engine
    const short = { ...arrival(0), outputTokens: 1, firstTokenMs: null }
    for (const [answers, more, tokens, prefill, source] of [
      [[], {}, 50, 2000, 'assumed'],
      [[short], {}, 50, 2000, 'assumed'],
      [[arrival(0)], { tokens_per_second: 7 }, 7, 2000, 'asked'],
      [[], { tokens_per_second: 7 }, 7, 280, 'asked'],
      // Slower than one token in two seconds.
      [[{ ...arrival(0), outputTokens: 10, durationMs: 100_500 }], {}, 1, 2000, 'recorded'],
    ] as const) {
      const expected = { tokens_per_second: tokens, prefill_tokens_per_second: prefill, source }
      assert.deepEqual(await engineOf([...answers], more), expected)
    }
  })
})

describe('the status of the queues, for callers', () => {
  it('has the models that the workspace can call, with the lane that serves it', async () => {
    const dedicated = [{ workspace: 'acme', engine: serverless.engine, limits }]
    const catalog = await catalogOf(
      entry('meta/a'),
      entry('meta/b', { dedicated }),
      entry('meta/hidden', { visible_to: ['other'] }),
      entry('meta/reserved', { serverless: undefined, dedicated: [{ ...dedicated[0], workspace: 'other' }] }),
      entry('meta/new'),
    )
    const lanes = new Map([
      ['meta/a', load],
      ['meta/b', load],
      ['meta/b@acme', idle],
      ['meta/hidden', load],
      ['meta/reserved@other', load],
    ])
    const route = queueStatusRoute({
      catalog,
      admission: { status: async () => lanes } as unknown as Admission,
      engineOf: ({ lane }) =>
        lane === 'meta/a' ? ({ start: () => ({ state: 'starting' }) } as unknown as Engine) : undefined,
    })
    const of = { in_flight_requests: 3, committed_tokens: 400, available_budget: 600, queue_depth: 2 }
    const status = { object: 'queue.status', ...of, limits: limitsView }
    assert.deepEqual((await ask([route], 'GET /api/v1/queue/status', { caller })).body, {
      object: 'list',
      data: [
        { ...status, model: 'meta/a', batch: batchView, engine: { state: 'starting', ready_in_ms: null } },
        { ...status, model: 'meta/b' },
      ],
    })
  })

  it('has the part of batch work while any of it runs or waits', async () => {
    const catalog = await catalogOf(entry('meta/a'))
    for (const [batch, isShown] of [
      [{ inFlightRequests: 1, committedTokens: 1, queueDepth: 0 }, true],
      [{ inFlightRequests: 0, committedTokens: 0, queueDepth: 1 }, true],
      [idle.batch, false],
    ] as const) {
      const admission = { status: async () => new Map([['meta/a', { ...load, batch }]]) } as unknown as Admission
      const route = queueStatusRoute({ catalog, admission, engineOf: () => undefined })
      const { body } = await ask([route], 'GET /api/v1/queue/status', { caller })
      assert.equal('batch' in (body as { data: [object] }).data[0], isShown)
    }
  })
})

/** A feed with one sample, which has ended. */
const ended: LiveFeed = {
  since: () => [sample],
  subscribe(_take, closed) {
    closed()
    return () => {}
  },
  admitted() {},
  close() {},
}

/** The data of the events of a stream. */
const samplesIn = (text: string): unknown[] => [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data!))

describe('the live load', () => {
  it('of the console has the models that the workspace can call, and the downloads', async () => {
    const catalog = await catalogOf(
      entry('meta/a'),
      entry('meta/b'),
      entry('meta/new'),
      entry('meta/hidden', { visible_to: ['other'] }),
    )
    const usable = { usable: () => true } as Engine
    const routes = consoleLiveRoutes({
      catalog,
      live: ended,
      engineOf: ({ lane }: Deployment) => (lane === 'meta/a' ? usable : undefined),
      downloads: () => [
        { model: 'x', receivedBytes: 1, totalBytes: 2, problem: 'p' },
        { model: 'y', receivedBytes: 1, totalBytes: undefined, problem: undefined },
      ],
    } as unknown as ConsoleLiveParts)
    const session = { caller } as SignedIn
    const load = {
      in_flight_requests: 3,
      max_concurrent_requests: 4,
      committed_tokens: 400,
      token_budget: 1000,
      queue_depth: 2,
    }
    const { text, headers } = await ask(routes, 'GET /console/api/live', { session })
    assert.equal(headers['Content-Type'], 'text/event-stream; charset=utf-8')
    assert.deepEqual(samplesIn(text), [
      {
        at: sample.at,
        models: [
          {
            model: 'meta/a',
            available: true,
            ...load,
            wait_ms_p95: 120,
            admitted_per_minute: 14.24,
            admitted_requests: 31,
          },
          {
            model: 'meta/b',
            available: false,
            ...load,
            wait_ms_p95: null,
            admitted_per_minute: null,
            admitted_requests: 0,
          },
        ],
        downloads: [
          { model: 'x', received_bytes: 1, total_bytes: 2, problem: 'p' },
          { model: 'y', received_bytes: 1, total_bytes: null, problem: null },
        ],
      },
    ])
  })

  it('of the operator needs a session of the operator', async () => {
    const sessions = { find: async (token: string) => (token === 'right' ? { owner: OPERATOR } : undefined) }
    const operatorSessions = sessions as unknown as Sessions
    const route = operatorLiveRoute({ live: ended, operatorToken: 'secret', operatorSessions })
    assert.deepEqual(route.roles, ['operator', 'viewer'])
    const asked = (token: string) =>
      ask([route], 'GET /console/api/live', { headers: { cookie: `weir_operator=${token}` } })
    await assert.rejects(asked('wrong'), { code: 'missing_api_key' })
    const [streamed] = samplesIn((await asked('right')).text) as [{ lanes: readonly { lane: string }[] }]
    assert.deepEqual(
      streamed.lanes.map(({ lane }) => lane),
      ['meta/a', 'meta/b'],
    )
  })
})
