import type { Static } from 'typebox'
import { usageView } from '../views.ts'
import { periodOf } from '../../../shared/period.ts'
import { ApiError } from '../../../shared/errors.ts'
import { formatAud, type PicoAud } from '../../../shared/money/money.ts'
import { paceOf } from '../pace.ts'
import { sydneyMonth } from '../../../shared/money/sydney-time.ts'
import { added, type UsageSums } from '../usage-sums.ts'
import type { LedgerRow } from '../../../ledger/rows.ts'
import type { Workspace } from '../../../workspaces/workspace.ts'
import type { ReportGrouping, ReportStore } from '../report-store.ts'
import type { UsageStore } from '../usage-store.ts'
import {
  filterOf,
  GROUPS_SHOWN,
  reportPeriod,
  timesIn,
  type FilterParameters,
  type PeriodParameters,
} from './report-period.ts'
import type { requestListQuery } from './report-schema.ts'

/** The reports behind the pages of both consoles. */

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const RECENT_DAYS = 7
/** The id is empty if a page ends between two hours. */
const CURSOR = /^(\d{1,15})_([\w:-]{0,100})$/

export async function usageOverview(
  store: ReportStore,
  workspaceId: string | undefined,
  parameters: PeriodParameters & FilterParameters,
  groupBy: ReportGrouping,
  nameOf: (group: string) => string = (group) => group,
): Promise<object> {
  const period = reportPeriod(parameters)
  const query = { workspaceId, ...period, ...filterOf(parameters), groupBy }
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

export async function monthOverview(store: UsageStore, workspace: Workspace, now: number): Promise<object> {
  const month = sydneyMonth(now)
  const scope = { workspaceId: workspace.id, groupBy: 'day', creditNote: '', withoutCredits: true } as const
  const hour = now - (now % HOUR_MS)
  const to = hour + HOUR_MS
  const previous = sydneyMonth(month.from - 1)
  const [{ amount: spent }, [firstDay]] = await Promise.all([
    store.usageTotal({ ...scope, from: month.from, to: month.to }),
    store.usageSums({ ...scope, from: previous.from, to, limit: 1 }),
  ])
  // The first day of use is incomplete, so it is left out.
  const begun = firstDay ? Number(firstDay.group) + DAY_MS : to
  const since = Math.min(to, Math.max(hour - RECENT_DAYS * DAY_MS, begun))
  const { amount: recent } = await store.usageTotal({ ...scope, from: since, to })
  const limit = workspace.spendLimit
  const pace = paceOf(month, now, spent, { amount: recent, ms: now - since }, limit?.amount)
  return {
    object: 'month.report',
    month: month.name,
    from: month.from,
    to: month.to,
    now,
    spent: formatAud(spent),
    pace_days: pace.days,
    per_day: audOf(pace.perDay),
    forecast: audOf(pace.forecast),
    spend_limit: limit && formatAud(limit.amount),
    spend_limit_kind: limit && (limit.isSoft ? 'soft' : 'hard'),
    reaches_limit_at: timeOf(pace.reachesLimitAt),
  }
}

export async function requestList(
  store: ReportStore,
  workspaceId: string | undefined,
  { from, to, model, key, status, code, outcome, before, limit = 50 }: Static<typeof requestListQuery>,
  viewOf: (row: LedgerRow) => object = usageView,
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
    ...filterOf({ model, key }),
    httpStatus: status,
    errorCode: code,
    outcome,
  })
  return {
    object: 'list',
    data: rows.map((row) => viewOf(row)),
    next: next ? `${next.settledAt}_${next.requestId}` : null,
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

const audOf = (amount: PicoAud | undefined): string | null => (amount === undefined ? null : formatAud(amount))
const timeOf = (at: number | undefined): string | null => (at === undefined ? null : new Date(at).toISOString())
