import { periodOf, usageQuery, usageView } from '../accounts/views.ts'
import { ApiError } from '../core/errors.ts'
import { formatAud } from '../core/money/money.ts'
import { sydneyDate } from '../core/money/sydney-time.ts'
import { groupings, type GroupedSums, type Grouping, type UsageSums } from '../core/money/usage-sums.ts'
import type { UsageQuery, UsageStore } from '../ports/usage.ts'

/** Usage as both APIs return it: pages of rows or of sums. */

const HOUR_MS = 3_600_000
const CURSOR = /^(\d{1,15})_([\w:-]{1,100})$/

export interface ReportScope {
  /** undefined means all workspaces, which only the operator may see. */
  readonly workspaceId: string | undefined
  /** What this caller may group by. */
  readonly groupings: readonly Grouping[]
  /** The name of a workspace, by its id. */
  workspaceName?(id: string): string
}

/** The groupings for a caller who sees only one workspace. */
export const ownGroupings: readonly Grouping[] = groupings.filter((it) => it !== 'workspace')

export function usageReport(store: UsageStore, scope: ReportScope, query: URLSearchParams): Promise<object> {
  return query.has('group_by') ? groupedReport(store, scope, query) : rowReport(store, scope, query)
}

/** The filters that lists and downloads of rows share. */
export function rowsQuery(workspaceId: string, query: URLSearchParams): UsageQuery {
  const period = { from: query.get('from'), to: query.get('to') }
  return usageQuery(workspaceId, period, {
    model: query.get('model') ?? undefined,
    priceVersions: query.has('price_versions') ? versionsIn(query.get('price_versions') ?? '') : undefined,
    creditNote: query.get('credit_note') ?? undefined,
  })
}

async function rowReport(store: UsageStore, { workspaceId }: ReportScope, query: URLSearchParams): Promise<object> {
  if (workspaceId === undefined) {
    throw new ApiError(
      'missing_required_parameter',
      "Rows can only be listed for one workspace: set 'workspace' or 'group_by'.",
      {
        param: 'workspace',
      },
    )
  }
  const limit = pageSize(query)
  const after = query.get('after')
  const cursor = CURSOR.exec(after ?? '')
  if (after !== null && !cursor) throw invalid('after', "the 'next' value of the previous page")
  const rows = await store.usage({
    ...rowsQuery(workspaceId, query),
    // One extra row shows whether there is another page.
    limit: limit + 1,
    after: cursor ? { settledAt: Number(cursor[1]), requestId: cursor[2] ?? '' } : undefined,
  })
  const last = rows.length > limit ? rows[limit - 1] : undefined
  return {
    object: 'list',
    data: rows.slice(0, limit).map(usageView),
    has_more: last !== undefined,
    next: last ? `${last.settledAt}_${last.requestId}` : null,
  }
}

async function groupedReport(store: UsageStore, scope: ReportScope, query: URLSearchParams): Promise<object> {
  const groupBy = scope.groupings.find((it) => it === query.get('group_by'))
  if (!groupBy) throw invalid('group_by', `one of ${scope.groupings.join(', ')}`)
  const period = periodOf({ from: query.get('from'), to: query.get('to') })
  for (const name of ['from', 'to'] as const) {
    const isOpen = period[name] === 0 || period[name] === Number.MAX_SAFE_INTEGER
    const isWhole = groupBy === 'day' ? isDate(query.get(name)) : period[name] % HOUR_MS === 0
    if (!isOpen && !isWhole)
      throw invalid(name, groupBy === 'day' ? 'a date when group_by is day' : 'on the hour when group_by is set')
  }
  const limit = pageSize(query)
  const cursor = query.get('after') ?? undefined
  const after = cursor !== undefined && groupBy === 'day' ? Number(cursor) : cursor
  if (Number.isNaN(after)) throw invalid('after', "the 'next' value of the previous page")
  const sumsQuery = { workspaceId: scope.workspaceId, ...period, groupBy }
  const [groups, total] = await Promise.all([
    store.usageSums({ ...sumsQuery, limit: limit + 1, after }),
    store.usageTotal(sumsQuery),
  ])
  const last = groups.length > limit ? groups[limit - 1] : undefined
  return {
    object: 'list',
    group_by: groupBy,
    data: groups.slice(0, limit).map((it) => Object.assign({ [groupBy]: nameOf(it, groupBy, scope) }, sumsView(it))),
    total: sumsView(total),
    has_more: last !== undefined,
    next: last ? String(last.group) : null,
  }
}

function nameOf({ group }: GroupedSums, groupBy: Grouping, scope: ReportScope): string {
  if (groupBy === 'day') return sydneyDate(Number(group))
  return groupBy === 'workspace' ? (scope.workspaceName?.(String(group)) ?? String(group)) : String(group)
}

function sumsView(sums: UsageSums): object {
  return {
    requests: sums.requests,
    estimated_requests: sums.estimatedRequests,
    input_tokens: Number(sums.inputTokens),
    cached_input_tokens: Number(sums.cachedInputTokens),
    output_tokens: Number(sums.outputTokens),
    images: Number(sums.images),
    audio_ms: Number(sums.audioMs),
    capacity_ms: Number(sums.capacityMs),
    amount_pico_aud: sums.amount.toString(),
    amount: formatAud(sums.amount),
  }
}

function isDate(text: string | null): boolean {
  return text === null || /^\d{4}-\d{2}-\d{2}$/.test(text)
}

function pageSize(query: URLSearchParams): number {
  const text = query.get('limit')
  if (text === null) return 100
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1 || value > 10_000) throw invalid('limit', 'an integer from 1 to 10000')
  return value
}

function versionsIn(text: string): readonly number[] {
  const versions = text.split(',').map(Number)
  if (versions.length > 1000 || !versions.every((it) => Number.isInteger(it) && it >= 0)) {
    throw invalid('price_versions', 'a comma-separated list of at most 1000 price versions')
  }
  return versions
}

function invalid(param: string, rule: string): ApiError {
  return new ApiError('invalid_value', `'${param}' must be ${rule}.`, { param })
}
