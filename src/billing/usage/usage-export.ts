import { usageView } from './views.ts'
import type { LedgerRow } from '../../ledger/rows.ts'
import { formatAud } from '../../shared/money/money.ts'
import { sydneyDate } from '../../shared/money/sydney-time.ts'
import type { UsageQuery, UsageStore } from './usage-store.ts'

/** Exports ledger rows as a file. The rows are streamed, so memory does not grow with their number. */

export const exportFormats = ['csv', 'jsonl'] as const
export type ExportFormat = (typeof exportFormats)[number]

export const exportTypes: Readonly<Record<ExportFormat, string>> = {
  csv: 'text/csv; charset=utf-8',
  jsonl: 'application/x-ndjson',
}

export const exportColumns = [
  'request_id',
  'started',
  'settled',
  'date_sydney',
  'model',
  'endpoint',
  'lane',
  'key_id',
  'outcome',
  'estimated',
  'input_tokens',
  'cached_input_tokens',
  'output_tokens',
  'images',
  'audio_ms',
  'capacity_ms',
  'amount_aud',
  'amount_pico_aud',
  'price_version',
  'max_tokens',
  'queue_wait_ms',
  'first_token_ms',
  'duration_ms',
  'corrects',
  'credit_note',
  'reason',
  'http_status',
  'error_code',
  'service_tier',
] as const
export type ExportColumn = (typeof exportColumns)[number]

/** Few enough that turning a page into text does not delay the requests being served. */
const PAGE_ROWS = 500

/** Every row that matches a query, page by page. */
export async function* eachPage(store: UsageStore, query: UsageQuery): AsyncGenerator<readonly LedgerRow[]> {
  let after = query.after
  for (;;) {
    const page = await store.usage({ ...query, after, limit: PAGE_ROWS })
    if (page.length > 0) yield page
    const last = page.at(-1)
    if (!last || page.length < PAGE_ROWS) return
    after = { settledAt: last.settledAt, requestId: last.requestId }
  }
}

export async function* exportRows(store: UsageStore, query: UsageQuery, format: ExportFormat): AsyncGenerator<string> {
  if (format === 'csv') yield `${exportColumns.join(',')}\n`
  for await (const page of eachPage(store, query)) {
    yield page.map((row) => (format === 'csv' ? csvLine(row) : `${JSON.stringify(exportView(row))}\n`)).join('')
  }
}

/** A row with the columns that a spreadsheet needs: the amount in dollars, and the day that it is invoiced for. */
export function exportView(row: LedgerRow): ExportedRow {
  return { ...usageView(row), date_sydney: sydneyDate(row.settledAt), amount_aud: formatAud(row.amount) }
}

type ExportedRow = Readonly<Partial<Record<string, string | number | boolean | null>>>

/** The file with the rows of a period, such as usage-2026-11-01-to-2026-11-30.csv. */
export function exportFileName({ from, to }: Pick<UsageQuery, 'from' | 'to'>, format: ExportFormat): string {
  const begin = from === 0 ? '' : `-${sydneyDate(from)}`
  const end = to === Number.MAX_SAFE_INTEGER ? '' : `-to-${sydneyDate(to - 1)}`
  return `usage${begin}${end}.${format}`
}

function csvLine(row: LedgerRow): string {
  const view = exportView(row)
  return `${exportColumns.map((column) => csvCell(view[column])).join(',')}\n`
}

export function csvCell(value: string | number | boolean | null | undefined): string {
  if (value === undefined || value === null) return ''
  const text = String(value)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
