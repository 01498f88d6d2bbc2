import { ApiError, statusOf } from '../core/errors.ts'
import { formatAud } from '../core/money/money.ts'
import type { LedgerRow } from '../core/money/ledger.ts'
import type { Refusal, RefusedGroup } from '../core/refusals.ts'
import { sydneyDate, sydneyMidnight } from '../core/money/sydney-time.ts'
import type { ApiKey, Buyer, Workspace } from '../ports/accounts.ts'
import type { CacheUseEntry } from '../ports/cache-use.ts'
import type { UsageQuery } from '../ports/usage.ts'
import type { Accounts } from './accounts.ts'

/** Accounts and usage as the command line and the operator's API show them. */

interface WorkspaceView {
  readonly id: string
  readonly name: string
  readonly requests_per_minute: number
  readonly spend_limit: string | null
  readonly spend_limit_kind: 'soft' | 'hard' | null
  readonly buyer: BuyerView
  readonly created: string
}

export function workspaceView(workspace: Workspace, defaultLimit: number): WorkspaceView {
  return {
    id: workspace.id,
    name: workspace.name,
    requests_per_minute: workspace.requestsPerMinute ?? defaultLimit,
    spend_limit: workspace.spendLimit && formatAud(workspace.spendLimit.amount),
    spend_limit_kind: workspace.spendLimit && (workspace.spendLimit.isSoft ? 'soft' : 'hard'),
    buyer: buyerView(workspace.buyer),
    created: new Date(workspace.createdAt).toISOString(),
  }
}

interface BuyerView extends Omit<Buyer, 'purchaseOrder'> {
  readonly purchase_order: string | null
}

function buyerView({ purchaseOrder, ...buyer }: Buyer): BuyerView {
  return { ...buyer, purchase_order: purchaseOrder }
}

interface KeyView {
  readonly id: string
  readonly workspace: string
  readonly name: string | null
  readonly created: string
  readonly expires_at: string | null
  /** When it was last used for a request that reached an engine. */
  readonly last_used_at: string | null
  readonly revoked: string | null
}

export function keyView(key: ApiKey, accounts: Accounts, lastUsed: ReadonlyMap<string, number>): KeyView {
  const time = (at: number | null | undefined): string | null => (at ? new Date(at).toISOString() : null)
  return {
    id: key.id,
    workspace: accounts.workspace(key.workspaceId).name,
    name: key.name,
    created: new Date(key.createdAt).toISOString(),
    expires_at: time(key.expiresAt),
    last_used_at: time(lastUsed.get(key.id)),
    revoked: time(key.revokedAt),
  }
}

export function usageView(row: LedgerRow): object {
  return {
    request_id: row.requestId,
    model: row.model,
    lane: row.lane,
    endpoint: row.endpoint,
    key_id: row.keyId,
    max_tokens: row.maxTokens,
    input_tokens: row.inputTokens,
    cached_input_tokens: row.cachedInputTokens,
    output_tokens: row.outputTokens,
    images: row.images,
    audio_ms: row.audioMs,
    estimated: row.estimated,
    outcome: row.outcome,
    http_status: row.httpStatus,
    error_code: row.errorCode,
    amount_pico_aud: row.amount.toString(),
    price_version: row.priceVersion,
    queue_wait_ms: row.queueWaitMs,
    first_token_ms: row.firstTokenMs,
    duration_ms: row.durationMs,
    started: new Date(row.startedAt).toISOString(),
    settled: new Date(row.settledAt).toISOString(),
    ...(row.capacityMs === undefined ? {} : { capacity_ms: row.capacityMs }),
    ...(row.correction === undefined
      ? {}
      : {
          corrects: row.correction.of,
          reason: row.correction.reason,
          credit_note: row.correction.creditNote === '' ? null : row.correction.creditNote,
        }),
    ...(row.credit === undefined
      ? {}
      : { reason: row.credit.reason, credit_note: row.credit.creditNote === '' ? null : row.credit.creditNote }),
  }
}

/** `name`: of a workspace, by its id; for those who see more than one. */
export function refusalView(it: Refusal, name?: (workspaceId: string) => string | null) {
  return {
    request_id: it.requestId,
    at: new Date(it.at).toISOString(),
    ...(name && { workspace: name(it.workspaceId) }),
    key_id: it.keyId || null,
    endpoint: it.endpoint || null,
    model: it.model || null,
    http_status: it.httpStatus,
    error_code: it.code,
    param: it.param || null,
    reason: it.reason,
  }
}

export function refusedGroupView(it: RefusedGroup, name?: (workspaceId: string) => string | null) {
  return {
    ...(name && { workspace: name(it.workspaceId) }),
    key_id: it.keyId || null,
    http_status: statusOf(it.code),
    error_code: it.code,
    requests: it.requests,
  }
}

export function cacheView(entry: CacheUseEntry) {
  const { keyId, model, requests, inputTokens, cachedInputTokens, misses, latestChange } = entry
  return {
    key: keyId,
    model,
    requests,
    input_tokens: inputTokens,
    cached_input_tokens: cachedInputTokens,
    cache_hit_rate: cachedInputTokens / inputTokens,
    misses,
    latest_change: latestChange
      ? {
          at: new Date(latestChange.at).toISOString(),
          message: latestChange.message,
          after_character: latestChange.afterCharacter,
        }
      : null,
  }
}

const DATE = /^(\d{4})-(\d{2})-(\d{2})$/
/** Four-digit years only: Date.parse also takes years that no calendar can show. */
const TIME = /^\d{4}-\d{2}-\d{2}T.*(Z|[+-]\d{2}:\d{2})$/
const MAX_USAGE_ROWS = 10_000

interface PeriodText {
  readonly from?: string | null | undefined
  readonly to?: string | null | undefined
}

export function usageQuery(
  workspaceId: string,
  period: PeriodText,
  page: Partial<Omit<UsageQuery, 'workspaceId' | 'from' | 'to'>> = {},
): UsageQuery {
  return { workspaceId, ...periodOf(period), limit: MAX_USAGE_ROWS, ...page }
}

/** A date means that day in Sydney, and `to` includes the whole day. A time needs an offset and is taken literally. */
export function periodOf({ from, to }: PeriodText): { from: number; to: number } {
  return {
    from: from ? instant('from', from, 0) : 0,
    to: to ? instant('to', to, 1) : Number.MAX_SAFE_INTEGER,
  }
}

/** A date means the end of that day in Sydney. */
export function endOf(name: string, text: string): number {
  return instant(name, text, 1)
}

function instant(name: string, text: string, daysAfter: number): number {
  const date = DATE.exec(text)
  const at = date ? midnightOf(date, daysAfter) : TIME.test(text) ? Date.parse(text) : Number.NaN
  // No row is older than 1970.
  if (!Number.isNaN(at)) return Math.max(0, at)
  throw new ApiError(
    'invalid_value',
    `'${name}' must be a date such as 2026-11-15, or a time such as 2026-11-15T09:00:00Z.`,
    {
      param: name,
    },
  )
}

/** NaN for a date that does not exist, such as 30 February, which would otherwise overflow into the next month. */
function midnightOf([text, year, month, day]: RegExpExecArray, daysAfter: number): number {
  const isReal = sydneyDate(sydneyMidnight(Number(year), Number(month), Number(day))) === text
  return isReal ? sydneyMidnight(Number(year), Number(month), Number(day) + daysAfter) : Number.NaN
}
