import { usageQuery, usageView } from './views.ts'
import { periodOf } from '../../shared/period.ts'
import { ApiError } from '../../shared/errors.ts'
import { formatAud } from '../../shared/money/money.ts'
import { serviceTiers, type ServiceTier } from '../rating/rating.ts'
import { sydneyDate } from '../../shared/money/sydney-time.ts'
import { added, groupings, type GroupedSums, type Grouping, type UsageSums } from './usage-sums.ts'
import type { UsageQuery, UsageStore } from './usage-store.ts'

/** Usage as both APIs return it: pages of rows or of sums. */

const HOUR_MS = 3_600_000
/** How many entries are serialized at a time. */
const PAGE_ENTRIES = 500
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

/** The JSON of a report, in pieces: a report may be so large that serializing it at once would delay other requests. */
export function usageReport(store: UsageStore, scope: ReportScope, query: URLSearchParams): AsyncGenerator<string> {
  return query.has('group_by') ? groupedReport(store, scope, query) : rowReport(store, scope, query)
}

/** The filters that lists and downloads of rows share. */
export function rowsQuery(workspaceId: string, query: URLSearchParams): UsageQuery {
  const period = { from: query.get('from'), to: query.get('to') }
  return usageQuery(workspaceId, period, {
    model: query.get('model') ?? undefined,
    keyId: query.get('key') ?? undefined,
    tier: query.has('service_tier') ? tierIn(query.get('service_tier') ?? '') : undefined,
    priceVersions: query.has('price_versions') ? versionsIn(query.get('price_versions') ?? '') : undefined,
    creditNote: query.get('credit_note') ?? undefined,
  })
}

async function* rowReport(
  store: UsageStore,
  { workspaceId }: ReportScope,
  query: URLSearchParams,
): AsyncGenerator<string> {
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
  const rowSelection = rowsQuery(workspaceId, query)
  const pages = inPages(limit, cursor ? { settledAt: Number(cursor[1]), requestId: cursor[2] ?? '' } : undefined, {
    read: (count, from) => store.usage({ ...rowSelection, limit: count, after: from }),
    cursorOf: ({ settledAt, requestId }) => ({ settledAt, requestId }),
  })
  yield '{"object":"list","data":['
  const next = yield* listed(pages, usageView)
  yield `],${end(next && `${next.settledAt}_${next.requestId}`)}`
}

async function* groupedReport(store: UsageStore, scope: ReportScope, query: URLSearchParams): AsyncGenerator<string> {
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
  const pages = inPages(limit, after, {
    read: (count, from) => store.usageSums({ ...sumsQuery, limit: count, after: from }),
    cursorOf: ({ group }) => group,
  })
  const sums: UsageSums[] = []
  yield `{"object":"list","group_by":"${groupBy}","data":[`
  const next = yield* listed(pages, (it) => {
    sums.push(it)
    return Object.assign({ [groupBy]: nameOf(it, groupBy, scope) }, sumsView(it))
  })
  // The total of some groups requires reading all others.
  const total = after === undefined && next === undefined ? added(sums) : await store.usageTotal(sumsQuery)
  yield `],"total":${JSON.stringify(sumsView(total))},${end(next && String(next.group))}`
}

/** Reads up to `limit` entries, some at a time. Returns the last one if there are more. */
async function* inPages<Entry, Cursor>(
  limit: number,
  start: Cursor | undefined,
  source: {
    read(count: number, after: Cursor | undefined): Promise<readonly Entry[]>
    cursorOf(entry: Entry): Cursor
  },
): AsyncGenerator<readonly Entry[], Entry | undefined> {
  let after = start
  for (let left = limit; ;) {
    const count = Math.min(left, PAGE_ENTRIES)
    // One extra entry shows whether there is another page.
    const entries = await source.read(count + 1, after)
    yield entries.slice(0, count)
    if (entries.length <= count) return undefined
    const last = entries[count - 1]
    left -= count
    if (left === 0 || last === undefined) return last
    after = source.cursorOf(last)
  }
}

/** The items of a JSON array, page by page. Returns what the pages return. */
async function* listed<Entry>(
  pages: AsyncGenerator<readonly Entry[], Entry | undefined>,
  view: (entry: Entry) => object,
): AsyncGenerator<string, Entry | undefined> {
  let separator = ''
  for (;;) {
    const page = await pages.next()
    if (page.done) return page.value
    if (page.value.length > 0) yield separator + page.value.map((it) => JSON.stringify(view(it))).join(',')
    separator = ','
  }
}

function end(next: string | undefined): string {
  return `"has_more":${next !== undefined},"next":${JSON.stringify(next ?? null)}}`
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
    cache_hit_rate: sums.inputTokens === 0n ? null : Number(sums.cachedInputTokens) / Number(sums.inputTokens),
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

export function tierIn(text: string): ServiceTier {
  const tier = serviceTiers.find((it) => it === text)
  if (!tier) throw invalid('service_tier', `one of ${serviceTiers.join(', ')}`)
  return tier
}

function versionsIn(text: string): readonly number[] {
  const versions = text.split(',').map(Number)
  if (versions.length > 1000 || !versions.every(Number.isInteger)) {
    throw invalid('price_versions', 'a comma-separated list of at most 1000 price versions')
  }
  return versions
}

function invalid(param: string, rule: string): ApiError {
  return new ApiError('invalid_value', `'${param}' must be ${rule}.`, { param })
}
