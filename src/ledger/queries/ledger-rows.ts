import type { ErrorCode } from '../../shared/errors.ts'
import { CREDIT, documentOfRow, type Intent, type LedgerRow, type Outcome } from '../rows.ts'
import type { ServiceTier } from '../../billing/rating/rating.ts'
import { sydneyDay } from '../../shared/money/sydney-time.ts'
import type { Row, Values } from '../../store/database.ts'
import type { GivenColumn } from '../../store/fragments.ts'

/** Ledger rows in the form of the tables. */

/** The columns that are known when a request begins. */
const INTENT_COLUMNS = [
  'request_id',
  'workspace_id',
  'key_id',
  'model',
  'lane',
  'endpoint',
  'price_version',
  'max_tokens',
  'started_at',
  'tier',
] as const

export const ROW_COLUMNS = [
  ...INTENT_COLUMNS,
  'input_tokens',
  'cached_input_tokens',
  'output_tokens',
  'images',
  'audio_ms',
  'estimated',
  'outcome',
  'http_status',
  'error_code',
  'amount_pico_aud',
  'queue_wait_ms',
  'first_token_ms',
  'duration_ms',
  'capacity_ms',
  'corrects',
  'credit_note',
  'reason',
  'settled_at',
  'settled_day',
] as const

const TEXT_COLUMNS: ReadonlySet<string> = new Set<(typeof ROW_COLUMNS)[number]>([
  'request_id',
  'workspace_id',
  'key_id',
  'model',
  'lane',
  'endpoint',
  'tier',
  'outcome',
  'error_code',
  'corrects',
  'credit_note',
  'reason',
])

/** The columns of rows that are given to a statement, in the order of `rowValues`. */
export const GIVEN_COLUMNS: readonly GivenColumn[] = ROW_COLUMNS.map((name) => ({
  name,
  type: TEXT_COLUMNS.has(name) ? 'text' : 'integer',
}))

/** A ? for each column. */
export const placeholders = (columns: readonly string[]): string => columns.map(() => '?').join(', ')

/** In the order of INTENT_COLUMNS. */
function intentValues(it: Intent): Values {
  return [
    it.requestId,
    it.workspaceId,
    it.keyId,
    it.model,
    it.lane,
    it.endpoint,
    it.priceVersion,
    it.maxTokens,
    it.startedAt,
    it.tier,
  ]
}

/** In the order of ROW_COLUMNS. */
export function rowValues(it: LedgerRow): Values {
  return [
    ...intentValues(it),
    it.inputTokens,
    it.cachedInputTokens,
    it.outputTokens,
    it.images,
    it.audioMs,
    it.estimated ? 1 : 0,
    it.outcome,
    it.httpStatus,
    it.errorCode,
    it.amount,
    it.queueWaitMs,
    it.firstTokenMs,
    it.durationMs,
    it.capacityMs ?? 0,
    it.correction?.of ?? null,
    documentOfRow(it),
    it.correction?.reason ?? it.credit?.reason ?? null,
    it.settledAt,
    sydneyDay(it.settledAt),
  ]
}

/** The reverse of `intentValues`. */
export function readIntentValues(values: Values): Intent {
  return toIntent(Object.fromEntries(INTENT_COLUMNS.map((column, index) => [column, values[index]])))
}

function toIntent(row: Row): Intent {
  return {
    requestId: String(row['request_id']),
    workspaceId: String(row['workspace_id']),
    keyId: String(row['key_id']),
    model: String(row['model']),
    lane: String(row['lane']),
    endpoint: String(row['endpoint']),
    priceVersion: Number(row['price_version']),
    maxTokens: Number(row['max_tokens']),
    startedAt: Number(row['started_at']),
    // The table of intents is of versions that had no tiers.
    tier: (row['tier'] ?? 'default') as ServiceTier,
  }
}

/** A row that no table accepts, as text. */
export function refusedRowText(row: LedgerRow): string {
  return JSON.stringify(row, (_name, value: unknown) => (typeof value === 'bigint' ? value.toString() : value))
}

/** undefined when the amount is not a number. */
export function readRefusedRowText(text: string): LedgerRow | undefined {
  const row = JSON.parse(text) as Omit<LedgerRow, 'amount' | 'tier'> & { amount: unknown; tier?: ServiceTier }
  if (typeof row.amount !== 'string' || !/^-?\d+$/.test(row.amount)) return undefined
  // Older versions wrote none of these.
  const { tier = 'default' } = row
  return {
    ...row,
    tier,
    httpStatus: row.httpStatus ?? null,
    errorCode: row.errorCode ?? null,
    amount: BigInt(row.amount),
  }
}

export function toLedgerRow(row: Row): LedgerRow {
  const capacityMs = Number(row['capacity_ms'])
  return {
    ...toIntent(row),
    inputTokens: Number(row['input_tokens']),
    cachedInputTokens: Number(row['cached_input_tokens']),
    outputTokens: Number(row['output_tokens']),
    images: Number(row['images']),
    audioMs: Number(row['audio_ms']),
    estimated: row['estimated'] === 1n,
    outcome: String(row['outcome']) as Outcome,
    httpStatus: row['http_status'] === null ? null : Number(row['http_status']),
    errorCode: row['error_code'] as ErrorCode | null,
    amount: row['amount_pico_aud'] as bigint,
    queueWaitMs: Number(row['queue_wait_ms']),
    firstTokenMs: row['first_token_ms'] === null ? null : Number(row['first_token_ms']),
    durationMs: Number(row['duration_ms']),
    settledAt: Number(row['settled_at']),
    ...(capacityMs === 0 ? {} : { capacityMs }),
    ...originOf(row),
  }
}

/** What kind of row it is, unless it is an ordinary one. */
function originOf(row: Row): Pick<LedgerRow, 'correction' | 'credit'> {
  const noted = { reason: String(row['reason']), creditNote: String(row['credit_note']) }
  if (row['corrects'] !== null) return { correction: { of: row['corrects'] as string, ...noted } }
  return row['endpoint'] === CREDIT ? { credit: noted } : {}
}
