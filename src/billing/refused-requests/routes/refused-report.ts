import { refusalView, refusedGroupView } from '../../usage/views.ts'
import { ApiError, errorCodes, statusOf } from '../../../shared/errors.ts'
import { periodOf } from '../../../shared/period.ts'
import { Type, type Static } from 'typebox'
import { sydneyDate } from '../../../shared/money/sydney-time.ts'
import type { RefusalReads, RefusedRequestsQuery } from '../refusal-store.ts'
import type { Refusal } from '../refusals.ts'
import { EXAMPLE_TIME, nullable } from '../../../server/common-schema.ts'
import { reportPeriod, startAmong, timesIn } from '../../usage/routes/report-period.ts'
import { requestIdDescription } from '../../usage/routes/usage-schema.ts'

/** Requests that were refused before they reached an engine: counts over time, and the newest ones. */

const DAY_MS = 86_400_000
const DAYS_BY_DEFAULT = 7
/** The maximum number of groups and requests in a report. */
const GROUPS_MAX = 200
const NEWEST_MAX = 1000

export const refusedQuery = Type.Object({
  from: Type.Optional(
    Type.String({
      description:
        'A date in Sydney, by default six days ago; or a time such as 2026-11-01T00:00:00Z. Counts are of whole days.',
    }),
  ),
  to: Type.Optional(
    Type.String({ description: 'A date, which is included, by default today; or a time, which is not included.' }),
  ),
  key: Type.Optional(Type.String({ description: 'Only requests with the key of this id.' })),
  code: Type.Optional(Type.Enum(errorCodes, { description: 'Only requests that were refused with this error code.' })),
  model: Type.Optional(Type.String({ description: 'Of the newest ones: only requests for this model.' })),
  status: Type.Optional(
    Type.Integer({ minimum: 100, maximum: 599, description: 'Of the newest ones: only those with this HTTP status.' }),
  ),
  before: Type.Optional(Type.String({ description: "The 'next' of the previous page of the newest ones." })),
  request_id: Type.Optional(
    Type.String({ description: 'Only this request among the newest ones, whenever it came: an X-Request-Id.' }),
  ),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: NEWEST_MAX, description: 'Of the newest ones: 1 to 1000, by default 100.' }),
  ),
})

const keyId = 'key_7f3a9c21'
const at = Type.Integer({ example: 1795000000000 })
const requests = Type.Integer({ example: 3 })

const about = {
  key_id: nullable(
    Type.String({ example: keyId }),
    'null if the request had no valid key. In sums of a workspace also: the keys beyond its first hundred in an hour.',
  ),
  http_status: nullable(Type.Integer({ example: 429 }), 'null if this version of Weir does not know the code.'),
  error_code: Type.String({ example: 'rate_limit_exceeded' }),
}

const workspace = nullable(
  Type.String({ example: 'acme' }),
  'The name of the workspace; null if the request had no valid key.',
)

/** `withWorkspaces`: for the operator, who sees all of them. */
export function refusedReportSchema({ withWorkspaces }: { withWorkspaces: boolean }) {
  const whose = withWorkspaces ? { workspace } : {}
  return Type.Object({
    object: Type.Literal('refused.report'),
    unit: Type.Enum(['hour', 'day'], { description: 'Hours for up to three days, else days.', example: 'day' }),
    times: Type.Array(at, { description: 'Unix ms of the beginning of every hour or day of the period.' }),
    total: { ...requests, description: 'How many requests were refused. Counts are kept for 31 days.' },
    codes: Type.Array(
      Type.Object({
        http_status: about.http_status,
        error_code: about.error_code,
        requests,
        series: Type.Array(Type.Object({ at, requests }), {
          description: 'Times without refused requests are left out.',
        }),
      }),
      { description: 'The most frequent first.' },
    ),
    groups: Type.Array(Type.Object({ ...whose, ...about, requests }), {
      description: `By key and code, the largest first, at most ${GROUPS_MAX}.`,
    }),
    newest: Type.Array(
      Type.Object({
        request_id: Type.String({ example: requestIdDescription.example }),
        at: Type.String({ example: EXAMPLE_TIME }),
        ...whose,
        key_id: nullable(Type.String({ example: keyId })),
        endpoint: nullable(Type.String({ example: '/chat/completions' }), 'null if there is no such path.'),
        model: nullable(Type.String(), 'null unless it is a model of the catalog.'),
        http_status: Type.Integer({ example: 429 }),
        error_code: about.error_code,
        param: nullable(Type.String(), 'The field that it is about.'),
        reason: Type.String({
          description: 'Never what the caller sent.',
          example: 'Too many requests in this minute: the workspace may send 600. Try again in 12 s.',
        }),
      }),
      { description: 'The newest first. Of each error code, the 20 newest of a workspace are kept, for 31 days.' },
    ),
    next: nullable(
      Type.String(),
      "Send it as 'before' to get the next page of the newest ones. null on the last page.",
    ),
  })
}

/** `nameOf`: names workspaces, for the operator. Others see only their own: `workspaceId`. */
export async function refusedReport(
  refusals: RefusalReads,
  workspaceId: string | undefined,
  parameters: Static<typeof refusedQuery>,
  now: number,
  nameOf?: (workspaceId: string) => string | null,
): Promise<object> {
  const exact = periodOf({
    from: parameters.from ?? sydneyDate(now - (DAYS_BY_DEFAULT - 1) * DAY_MS),
    to: parameters.to ?? sydneyDate(now),
  })
  const period = reportPeriod({ from: sydneyDate(exact.from), to: sydneyDate(Math.max(exact.from, exact.to - 1)) })
  const times = timesIn(period)
  const query = {
    workspaceId,
    keyId: parameters.key || undefined,
    code: parameters.code,
    from: period.from,
    to: period.to,
  }
  const limit = parameters.limit ?? 100
  const [hours, groups, newest] = await Promise.all([
    refusals.refusedOverTime(query),
    refusals.refusedGroups({ ...query, limit: GROUPS_MAX }),
    parameters.request_id === undefined
      ? refusals.refusedRequests({
          ...query,
          ...exact,
          model: parameters.model || undefined,
          httpStatus: parameters.status,
          before: placeOf(parameters.before),
          limit: limit + 1,
        })
      : oneRequest(refusals, workspaceId, parameters.request_id),
  ])
  return {
    object: 'refused.report',
    unit: period.unit,
    times,
    total: hours.reduce((sum, { requests }) => sum + requests, 0),
    codes: byCode(hours, times),
    groups: groups.map((it) => refusedGroupView(it, nameOf)),
    newest: newest.slice(0, limit).map((it) => refusalView(it, nameOf)),
    next: nextOf(newest, limit),
  }
}

const CURSOR = /^(\d{1,15})_([\w:-]{1,100})$/

function placeOf(before: string | undefined): RefusedRequestsQuery['before'] {
  if (before === undefined) return undefined
  const [, at, requestId] = CURSOR.exec(before) ?? []
  if (requestId !== undefined) return { at: Number(at), requestId }
  throw new ApiError('invalid_value', "'before' must be the 'next' value of the previous page.", { param: 'before' })
}

function nextOf(found: readonly Refusal[], limit: number): string | null {
  const last = found[limit - 1]
  return last && found.length > limit ? `${last.at}_${last.requestId}` : null
}

async function oneRequest(refusals: RefusalReads, workspaceId: string | undefined, requestId: string) {
  const found = await refusals.refusedRequest(requestId)
  return found && (workspaceId === undefined || found.workspaceId === workspaceId) ? [found] : []
}

function byCode(
  hours: Awaited<ReturnType<RefusalReads['refusedOverTime']>>,
  times: readonly number[],
): readonly object[] {
  const codes = [...Map.groupBy(hours, ({ code }) => code)].map(([code, own]) => {
    const series = new Map<number, number>()
    for (const { hour, requests } of own) {
      const at = startAmong(times, hour)
      series.set(at, (series.get(at) ?? 0) + requests)
    }
    return {
      http_status: statusOf(code),
      error_code: code,
      requests: own.reduce((sum, { requests }) => sum + requests, 0),
      series: [...series].map(([at, requests]) => ({ at, requests })),
    }
  })
  return codes.toSorted((one, other) => other.requests - one.requests)
}
