import type { Static } from 'typebox'
import { periodOf, usageView } from '../accounts/views.ts'
import { latencyBuckets } from '../billing/latency-report.ts'
import { ApiError } from '../core/errors.ts'
import { formatAud } from '../core/money/money.ts'
import { paceOf } from '../core/money/pace.ts'
import { sydneyDay, sydneyMonth } from '../core/money/sydney-time.ts'
import type { UsageSums } from '../core/money/usage-sums.ts'
import type { Workspace } from '../ports/accounts.ts'
import type { ReportGrouping, ReportStore, TimeQuery } from '../ports/reports.ts'
import type { UsageStore } from '../ports/usage.ts'
import type { requestListQuery } from './report-schema.ts'

/** The reports behind the pages of both consoles. */

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const HOURS_UP_TO_MS = 3 * DAY_MS
const PERIOD_MS_MAX = 400 * DAY_MS
const GROUPS_SHOWN = 6
const SAMPLE_ROWS = 1000
const RECENT_DAYS = 7
const CURSOR = /^(\d{1,15})_([\w:-]{1,100})$/

interface Period {
  readonly from: number
  readonly to: number
  readonly unit: TimeQuery['unit']
}

export async function usageOverview(
  store: ReportStore,
  workspaceId: string | undefined,
  asked: { readonly from: string; readonly to: string },
  groupBy: ReportGrouping,
  nameOf: (group: string) => string = (group) => group,
): Promise<object> {
  const period = reportPeriod(asked)
  const query = { workspaceId, ...period, groupBy }
  const [series, largest] = await Promise.all([
    store.usageOverTime(query),
    store.largestGroups({ ...query, limit: GROUPS_SHOWN }),
  ])
  const seriesOf = Map.groupBy(await store.groupsOverTime({ ...query, groups: largest }), ({ group }) => group)
  const groups = largest.map((group) => {
    const own = seriesOf.get(group) ?? []
    return {
      group: nameOf(group),
      ...sumsView(added(own)),
      series: own.map(({ at, requests, amount }) => ({ at, requests, amount: formatAud(amount) })),
    }
  })
  return {
    object: 'usage.report',
    unit: period.unit,
    times: timesIn(period),
    total: sumsView(added(series)),
    series: series.map((it) => ({ at: it.at, ...sumsView(it) })),
    groups,
  }
}

export async function latencyOverview(
  store: ReportStore,
  workspaceId: string,
  asked: { readonly from: string; readonly to: string },
): Promise<object> {
  const { unit, from, to } = reportPeriod(asked)
  const { rows, next } = await store.recentRequests({ workspaceId, from, to, limit: SAMPLE_ROWS })
  const startOf = unit === 'hour' ? (at: number) => at - (at % HOUR_MS) : sydneyDay
  return {
    object: 'latency.report',
    unit,
    requests: rows.length,
    since: timeOf(rows.at(-1)?.settledAt),
    is_complete: next === undefined,
    buckets: latencyBuckets(rows, startOf).map((it) => ({
      at: it.at,
      requests: it.requests,
      failed: it.failed,
      queue_wait_ms: it.queueWaitMs,
      first_token_ms: it.firstTokenMs,
      duration_ms: it.durationMs,
    })),
  }
}

export async function monthOverview(store: UsageStore, workspace: Workspace, now: number): Promise<object> {
  const month = sydneyMonth(now)
  const scope = { workspaceId: workspace.id, groupBy: 'day', creditNote: '', withoutCredits: true } as const
  const hour = now - (now % HOUR_MS)
  const since = Math.max(hour - RECENT_DAYS * DAY_MS, workspace.createdAt - (workspace.createdAt % HOUR_MS))
  const [{ amount: spent }, { amount: recent }] = await Promise.all([
    store.usageTotal({ ...scope, from: month.from, to: month.to }),
    store.usageTotal({ ...scope, from: since, to: hour + HOUR_MS }),
  ])
  const limit = workspace.spendLimit
  // A workspace of an hour ago is no reason to forecast a month from a few minutes.
  const pace = paceOf(month, now, spent, { amount: recent, ms: Math.max(now - since, DAY_MS) }, limit?.amount)
  return {
    object: 'month.report',
    month: month.name,
    from: month.from,
    to: month.to,
    now,
    spent: formatAud(spent),
    per_day: formatAud(pace.perDay),
    forecast: formatAud(pace.forecast),
    spend_limit: limit && formatAud(limit.amount),
    spend_limit_kind: limit && (limit.isSoft ? 'soft' : 'hard'),
    reaches_limit_at: timeOf(pace.reachesLimitAt),
  }
}

export async function requestList(
  store: ReportStore,
  workspaceId: string,
  { from, to, model, key, outcome, before, limit = 50 }: Static<typeof requestListQuery>,
): Promise<object> {
  const cursor = CURSOR.exec(before ?? '')
  if (before !== undefined && !cursor) {
    throw new ApiError('invalid_value', "'before' must be the 'next' value of the previous page.", { param: 'before' })
  }
  const { rows, next } = await store.recentRequests({
    workspaceId,
    ...periodOf({ from, to }),
    limit,
    before: cursor ? { settledAt: Number(cursor[1]), requestId: cursor[2] ?? '' } : undefined,
    model: model || undefined,
    keyId: key || undefined,
    onlyFailed: outcome === 'failed',
  })
  return { object: 'list', data: rows.map(usageView), next: next ? `${next.settledAt}_${next.requestId}` : null }
}

/** Whole days in Sydney. */
function reportPeriod(asked: { readonly from: string; readonly to: string }): Period {
  for (const name of ['from', 'to'] as const) {
    if (!/^\d{4}-\d{2}-\d{2}$/.test(asked[name])) {
      throw new ApiError('invalid_value', `'${name}' must be a date such as 2026-11-16.`, { param: name })
    }
  }
  const { from, to } = periodOf(asked)
  if (to <= from || to - from > PERIOD_MS_MAX) {
    throw new ApiError('invalid_value', "'to' must be the same day as 'from' or up to 400 days later.", { param: 'to' })
  }
  return { from, to, unit: to - from <= HOURS_UP_TO_MS ? 'hour' : 'day' }
}

function timesIn({ from, to, unit }: Period): readonly number[] {
  const times: number[] = []
  // A day has 23 to 25 hours.
  const after = (at: number): number => (unit === 'hour' ? at + HOUR_MS : sydneyDay(at + 26 * HOUR_MS))
  for (let at = from; at < to; at = after(at)) times.push(at)
  return times
}

function added(all: readonly UsageSums[]): UsageSums {
  const sum = (pick: (it: UsageSums) => bigint): bigint => all.reduce((total, it) => total + pick(it), 0n)
  const count = (pick: (it: UsageSums) => number): number => all.reduce((total, it) => total + pick(it), 0)
  return {
    rows: count(({ rows }) => rows),
    requests: count(({ requests }) => requests),
    estimatedRequests: count(({ estimatedRequests }) => estimatedRequests),
    inputTokens: sum(({ inputTokens }) => inputTokens),
    cachedInputTokens: sum(({ cachedInputTokens }) => cachedInputTokens),
    outputTokens: sum(({ outputTokens }) => outputTokens),
    images: sum(({ images }) => images),
    audioMs: sum(({ audioMs }) => audioMs),
    capacityMs: sum(({ capacityMs }) => capacityMs),
    amount: sum(({ amount }) => amount),
  }
}

export function sumsView(sums: UsageSums) {
  return {
    requests: sums.requests,
    input_tokens: Number(sums.inputTokens),
    cached_input_tokens: Number(sums.cachedInputTokens),
    output_tokens: Number(sums.outputTokens),
    images: Number(sums.images),
    audio_ms: Number(sums.audioMs),
    amount: formatAud(sums.amount),
  }
}

const timeOf = (at: number | undefined): string | null => (at === undefined ? null : new Date(at).toISOString())
