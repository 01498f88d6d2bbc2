import { Type, type Static } from 'typebox'
import type { Catalog } from '../../catalog/catalog.ts'
import { laneLimitsSchema } from '../../catalog/file-limits.ts'
import type { LaneLimits } from '../lane.ts'
import { recordedSpeed } from '../recorded-speed.ts'
import { simulateQueue, type QueueReport, type Spread } from '../queue-simulation.ts'
import type { Clock } from '../../shared/clock.ts'
import type { LiveFeed, Sample } from '../live.ts'
import type { ArrivalStore } from '../../billing/usage/usage-store.ts'
import { EXAMPLE_MODEL, nullable } from '../../server/common-schema.ts'
import { jsonResponse } from '../../server/route.ts'
import { batchLoadSchema, batchLoadView, deploymentAt, laneLimitsExample, limitsIn, limitsView } from './lane-limits.ts'
import { operatorRoute, type OperatorRoute } from '../../server/operator-route.ts'

/** The live queues of all lanes, and a simulation of other limits on recent requests. */

export interface QueuesParts {
  readonly catalog: Catalog
  readonly live: LiveFeed
  readonly store: ArrivalStore
  readonly clock: Clock
}

const sampleSchema = Type.Object({
  at: Type.Integer({ description: 'Unix ms.', example: 1795000000000 }),
  lanes: Type.Array(
    Type.Object({
      lane: Type.String({ example: EXAMPLE_MODEL }),
      in_flight_requests: Type.Integer({ example: 2 }),
      committed_tokens: Type.Integer({ example: 4384 }),
      queue_depth: Type.Integer(),
      batch: batchLoadSchema,
      oldest_wait_ms: Type.Integer({
        description: 'How long the head of the queue has waited; 0 if the queue is empty.',
      }),
      wait_ms_p50: nullable(Type.Integer({ example: 0 })),
      wait_ms_p95: nullable(Type.Integer({ example: 120 })),
      limits: { ...laneLimitsSchema, example: laneLimitsExample },
    }),
  ),
})

const spreadSchema = (example: Pick<Spread, 'p50' | 'p95' | 'max'>) =>
  nullable(Type.Object({ p50: Type.Integer(), p95: Type.Integer(), max: Type.Integer() }, { example }))

const runSchema = Type.Object({
  limits: { ...laneLimitsSchema, example: laneLimitsExample },
  requests: Type.Integer({ example: 412 }),
  admitted: Type.Integer({ example: 410 }),
  queue_full: Type.Integer({ example: 2 }),
  overloaded: Type.Integer(),
  too_large: Type.Integer(),
  wait_ms: spreadSchema({ p50: 0, p95: 900, max: 4100 }),
  answer_ms: spreadSchema({ p50: 1200, p95: 3900, max: 9100 }),
})

const engineSchema = Type.Object(
  {
    tokens_per_second: Type.Integer({ description: 'The output speed of a single request.', example: 60 }),
    prefill_tokens_per_second: Type.Integer({ description: 'The input speed of a single request.', example: 2400 }),
    source: Type.Enum(['recorded', 'asked', 'assumed'], {
      description:
        'recorded: measured from the answers of the lane in this period. asked: taken from the request. assumed: a default, because no answer was long enough to measure.',
    }),
  },
  { description: 'The engine that was simulated.' },
)

/** Used when nothing is known about the engine. */
const ASSUMED_TOKENS_PER_SECOND = 50
/** Engines process input many times faster than they generate output. */
const PREFILL_FACTOR = 40

const HOUR_MS = 3_600_000
/** Simulating this many takes a few milliseconds, which is short enough not to delay other requests. */
const SIMULATED_MAX = 5000

const simulationBody = Type.Object({
  lane: Type.String({ minLength: 1, maxLength: 300, description: 'The name of a lane, as listed.' }),
  limits: laneLimitsSchema,
  hours: Type.Integer({ minimum: 1, maximum: 168, description: 'How many hours back, from 1 to 168.' }),
  tokens_per_second: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 100_000,
      description:
        'The output speed of a single request. By default it is measured from the recorded answers of the lane.',
    }),
  ),
})

export function queueRoutes({ catalog, live, store, clock }: QueuesParts): readonly OperatorRoute[] {
  return [
    operatorRoute({
      method: 'GET',
      path: '/admin/v1/queues',
      id: 'listQueues',
      summary: 'Queues',
      description:
        'Every lane, at most two seconds old, with the waits of requests that were admitted in the last five minutes.',
      response: jsonResponse(sampleSchema),
      errors: [],
      async answer({ exchange }) {
        const latest = live.since(undefined).at(-1)
        exchange.sendJson(JSON.stringify(latest ? sampleView(latest) : { at: clock.now(), lanes: [] }))
      },
    }),
    operatorRoute({
      method: 'POST',
      path: '/admin/v1/queues/simulate',
      changesNothing: true,
      id: 'simulateLimits',
      summary: 'Try other limits',
      description:
        'Simulates the queue on the requests of the last hours, up to the newest 5,000, once with the limits in force and once with the proposed ones. Nothing is changed. Refused requests are not recorded, so they are missing.',
      body: simulationBody,
      example: { lane: EXAMPLE_MODEL, limits: laneLimitsExample, hours: 6 },
      response: jsonResponse(Type.Object({ engine: engineSchema, current: runSchema, proposed: runSchema })),
      errors: ['not_found'],
      async answer({ exchange, body }) {
        exchange.sendJson(JSON.stringify(await simulated(catalog, store, clock.now(), body)))
      },
    }),
  ]
}

async function simulated(
  catalog: Catalog,
  store: ArrivalStore,
  now: number,
  { lane, limits, hours, tokens_per_second: given }: Static<typeof simulationBody>,
): Promise<object> {
  const deployment = deploymentAt(catalog, lane)
  const period = { from: now - hours * HOUR_MS, to: now }
  const newest = await store.newestArrivals({ lane, ...period, limit: SIMULATED_MAX })
  const recorded = newest.toSorted((one, other) => one.arrivedAt - other.arrivedAt)
  const from = recorded[0]?.arrivedAt ?? now
  const arrivals = recorded.map(({ arrivedAt, ...sizes }) => ({ atMs: arrivedAt - from, ...sizes }))
  const seen = recordedSpeed(recorded)
  const tokensPerSecond = given ?? seen.tokensPerSecond ?? ASSUMED_TOKENS_PER_SECOND
  const prefillTokensPerSecond = seen.prefillTokensPerSecond ?? tokensPerSecond * PREFILL_FACTOR
  const engine = { tokensPerSecond, prefillTokensPerSecond, slowdown: 0.02 }
  const run = (tried: LaneLimits): object =>
    runView(simulateQueue({ limits: tried, engine, arrivals, durationMs: Math.max(1, now - from) }))
  return {
    engine: {
      tokens_per_second: Math.max(1, Math.round(tokensPerSecond)),
      prefill_tokens_per_second: Math.max(1, Math.round(prefillTokensPerSecond)),
      source: given !== undefined ? 'asked' : seen.tokensPerSecond === undefined ? 'assumed' : 'recorded',
    },
    current: run(deployment.limits),
    proposed: run(limitsIn(limits)),
  }
}

function runView(report: QueueReport): object {
  return {
    limits: limitsView(report.limits),
    requests: report.requests,
    admitted: report.admittedAtOnce + report.admittedAfterWait,
    queue_full: report.queueFull,
    overloaded: report.overloaded,
    too_large: report.tooLarge,
    wait_ms: spreadView(report.waitMs),
    answer_ms: spreadView(report.answerMs),
  }
}

function spreadView(spread: Spread | null): object | null {
  return spread && { p50: Math.round(spread.p50), p95: Math.round(spread.p95), max: Math.round(spread.max) }
}

export function sampleView({ at, lanes, waits }: Sample): object {
  return {
    at,
    lanes: [...lanes].map(([lane, load]) => ({
      lane,
      in_flight_requests: load.inFlightRequests,
      committed_tokens: load.committedTokens,
      queue_depth: load.queueDepth,
      batch: batchLoadView(load),
      oldest_wait_ms: Math.round(load.oldestWaitMs),
      wait_ms_p50: waits.get(lane)?.p50 ?? null,
      wait_ms_p95: waits.get(lane)?.p95 ?? null,
      limits: limitsView(load.limits),
    })),
  }
}
