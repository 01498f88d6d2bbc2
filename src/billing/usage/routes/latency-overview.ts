import { latencyBuckets, type LatencyBucket } from '../latency-report.ts'
import { takeTurns, type TurnClient } from '../../../shared/turns.ts'
import type { ReportStore, SampledRequest, SampleQuery, TimeQuery, TimeSums } from '../report-store.ts'
import {
  nextStart,
  filterOf,
  GROUPS_SHOWN,
  reportPeriod,
  startAmong,
  timesIn,
  type FilterParameters,
  type PeriodParameters,
  type Period,
} from './report-period.ts'

/**
 * How long requests took and how many failed, over time and by model or key. The sums do not include durations, so this
 * is computed from rows: from a sample spread over the whole period, small enough to be quick. If a model or key has
 * few rows, the sums show in which hours they are.
 */

const ROWS_MAX = 5000
/** If requests are few, this many hours are read. */
const HOURS_MAX = 400
/** A day is sampled at several times of day, if the period is short enough. */
const SPANS = 100

/** A report takes tens of milliseconds of the event loop and of the thread that reads the database. */
const turns = takeTurns({
  atOnce: 2,
  maxWaiting: 256,
  maxWaitingOfOwner: 32,
  full: 'Too many reports of times and failures are waiting to be made. Try again shortly.',
  ownerFull: 'Too many reports of times and failures of this workspace are waiting. Try again when some have come.',
})

export function latencyOverview(
  client: TurnClient,
  store: ReportStore,
  workspaceId: string,
  parameters: PeriodParameters & FilterParameters,
  groupBy: 'model' | 'key',
  now: number,
): Promise<object> {
  return turns.run(client, () => overviewOf(store, workspaceId, parameters, groupBy, now))
}

async function overviewOf(
  store: ReportStore,
  workspaceId: string,
  parameters: PeriodParameters & FilterParameters,
  groupBy: 'model' | 'key',
  now: number,
): Promise<object> {
  const period = reportPeriod(parameters)
  const query = { workspaceId, ...filterOf(parameters), ...period, groupBy }
  const [largest, { sampled, all }] = await Promise.all([
    store.largestGroups({ ...query, limit: GROUPS_SHOWN }),
    sampleOf(store, query, now),
  ])
  const members = Map.groupBy(sampled, ({ model, keyId }) => (groupBy === 'model' ? model : keyId))
  return reportView(
    period,
    all,
    sampled,
    largest.map((group) => ({ group, own: members.get(group) ?? [] })),
  )
}

/** The same over all workspaces: each of those that cost most is sampled by itself, since its rows have an index of their own. */
export function latencyOfWorkspaces(
  client: TurnClient,
  store: ReportStore,
  parameters: PeriodParameters & FilterParameters,
  now: number,
  nameOf: (workspaceId: string) => string,
): Promise<object> {
  return turns.run(client, () => overviewOfWorkspaces(store, parameters, now, nameOf))
}

async function overviewOfWorkspaces(
  store: ReportStore,
  parameters: PeriodParameters & FilterParameters,
  now: number,
  nameOf: (workspaceId: string) => string,
): Promise<object> {
  const period = reportPeriod(parameters)
  const query = { workspaceId: undefined, ...filterOf(parameters), ...period, groupBy: 'workspace' } as const
  const [largest, series] = await Promise.all([
    store.largestGroups({ ...query, limit: GROUPS_SHOWN }),
    store.usageOverTime(query),
  ])
  const groups = await Promise.all(
    largest.map(async (workspaceId) => ({
      group: nameOf(workspaceId),
      own: (await sampleOf(store, { ...query, workspaceId }, now)).sampled,
    })),
  )
  const sampled = groups.flatMap(({ own }) => own)
  return reportView(period, requestsIn(series), sampled, groups)
}

/** A sample of the requests of a workspace, and how many it has. */
async function sampleOf(
  store: ReportStore,
  query: TimeQuery & { readonly workspaceId: string },
  now: number,
): Promise<{ readonly sampled: readonly SampledRequest[]; readonly all: number }> {
  const { workspaceId, model, keyId, unit } = query
  const all = requestsIn(await store.usageOverTime(query))
  const areFew = all <= ROWS_MAX && (model !== undefined || keyId !== undefined)
  const spans = areFew
    ? hoursAmong(await store.usageOverTime({ ...query, unit: 'hour' }))
    : spansOf(timesIn(query), unit, now)
  const rowsOfEach = Math.floor(ROWS_MAX / Math.max(1, spans.length))
  return { sampled: await store.sampledRequests({ workspaceId, model, keyId, spans, rowsOfEach }), all }
}

const requestsIn = (series: readonly TimeSums[]): number => series.reduce((total, { requests }) => total + requests, 0)

function reportView(
  period: Period,
  all: number,
  sampled: readonly SampledRequest[],
  groups: readonly { readonly group: string; readonly own: readonly SampledRequest[] }[],
): object {
  const times = timesIn(period)
  const bucketsOf = (requests: readonly SampledRequest[]): readonly object[] =>
    latencyBuckets(requests, (at) => startAmong(times, at)).map(bucketView)
  return {
    object: 'latency.report',
    unit: period.unit,
    requests: sampled.length,
    of_requests: all,
    is_complete: sampled.length >= all,
    buckets: bucketsOf(sampled),
    groups: groups.map(({ group, own }) => ({ group, requests: own.length, buckets: bucketsOf(own) })),
  }
}

/** Parts of the hours or days that have begun, equally long within each. */
function spansOf(times: readonly number[], unit: Period['unit'], now: number): SampleQuery['spans'] {
  const begun = times.filter((at) => at <= now)
  const parts = Math.max(1, Math.floor(SPANS / begun.length))
  return begun.flatMap((at) => {
    const length = (nextStart(at, unit) - at) / parts
    const edge = (index: number): number => Math.round(at + index * length)
    return Array.from({ length: parts }, (_, index) => ({ from: edge(index), to: edge(index + 1) }))
  })
}

/** Hours with requests: all of them, or some from all over the period. */
function hoursAmong(sums: readonly TimeSums[]): SampleQuery['spans'] {
  const used = sums.filter(({ requests }) => requests > 0)
  const step = Math.max(1, used.length / HOURS_MAX)
  return used
    .filter((_, index) => Math.floor(index / step) > Math.floor((index - 1) / step))
    .map(({ at }) => ({ from: at, to: nextStart(at, 'hour') }))
}

const bucketView = (bucket: LatencyBucket) => ({
  at: bucket.at,
  requests: bucket.requests,
  failed: bucket.failed,
  queue_wait_ms: bucket.queueWaitMs,
  first_token_ms: bucket.firstTokenMs,
  duration_ms: bucket.durationMs,
  tokens_per_second: bucket.tokensPerSecond,
})
