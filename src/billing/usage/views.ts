import { periodOf, type PeriodText } from '../../shared/period.ts'
import { statusOf } from '../../shared/errors.ts'
import type { LedgerRow } from '../../ledger/rows.ts'
import type { Refusal, RefusedGroup } from '../refused-requests/refusals.ts'
import type { CacheUseEntry } from '../../engines/cache-use.ts'
import type { UsageQuery } from './usage-store.ts'
import type { Accounts } from '../../workspaces/accounts.ts'

/** Usage as the command line and the operator's API show them. */

export function usageView(row: LedgerRow): object {
  return {
    request_id: row.requestId,
    model: row.model,
    lane: row.lane,
    endpoint: row.endpoint,
    service_tier: row.tier,
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

/** A row as the operator sees it, who sees those of all workspaces. */
export function operatorRowView(row: LedgerRow, accounts: Pick<Accounts, 'workspaceById'>): object {
  return { workspace: accounts.workspaceById(row.workspaceId)?.name ?? null, ...usageView(row) }
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

const MAX_USAGE_ROWS = 10_000

export function usageQuery(
  workspaceId: string,
  period: PeriodText,
  page: Partial<Omit<UsageQuery, 'workspaceId' | 'from' | 'to'>> = {},
): UsageQuery {
  return { workspaceId, ...periodOf(period), limit: MAX_USAGE_ROWS, ...page }
}
