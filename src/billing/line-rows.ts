import { ApiError } from '../core/errors.ts'
import type { InvoiceDocument } from '../core/money/invoice-document.ts'
import type { DocumentLine } from '../core/money/invoice-lines.ts'
import { linesOf, type InvoiceLine, type VersionRates } from '../core/money/invoice.ts'
import { CREDIT, type LedgerRow } from '../core/money/ledger.ts'
import type { PicoAud } from '../core/money/money.ts'
import type { InvoiceStore } from '../ports/invoices.ts'
import type { AccountStore } from '../ports/store.ts'
import type { UsageQuery, UsageStore } from '../ports/usage.ts'
import { eachPage } from './usage-export.ts'
import { addTo, emptySums } from './priced-sums.ts'
import { versionRates } from './version-rates.ts'

/** The rows behind one line of an issued document, each with its share of the line. */
export interface LineRows {
  readonly document: InvoiceDocument
  readonly line: DocumentLine
  /** One page of rows, oldest first. */
  page(after: UsageQuery['after'], limit: number): Promise<readonly LineRow[]>
  /** All rows, page by page. */
  all(): AsyncGenerator<readonly LineRow[]>
}

export interface LineRow {
  readonly row: LedgerRow
  /** What the row adds to the line's quantity: tokens, images or milliseconds; 1 for a credit. */
  readonly quantity: bigint
  /** What the row adds to the line's amount. For a line of roundings: the rounded amount of the row. */
  readonly amount: PicoAud
}

export type LineRowsStore = AccountStore & UsageStore & InvoiceStore

export async function findLineRows(store: LineRowsStore, number: string, lineNumber: string): Promise<LineRows> {
  const [invoice] = await store.invoices({ number })
  const line = invoice?.document.lines[Number(lineNumber) - 1]
  if (!invoice || !line) throw new ApiError('not_found', 'There is no such line.')
  const { document, workspaceId, periodFrom, periodTo, issuedAt } = invoice
  const isFirst = document.kind === 'tax_invoice' && document.replaces === null
  const query: UsageQuery = {
    workspaceId,
    from: isFirst ? periodFrom : issuedAt,
    to: isFirst ? periodTo : issuedAt + 1,
    creditNote: isFirst ? '' : number,
    model: line.model,
    priceVersions: line.price_versions,
    limit: 0,
  }
  const ratesOf = versionRates(await store.priceVersions())
  const shares = (rows: readonly LedgerRow[]): readonly LineRow[] => rows.map((row) => shareOf(row, line, ratesOf))
  return {
    document,
    line,
    page: async (after, limit) => shares(await store.usage({ ...query, after, limit })),
    async *all() {
      for await (const rows of eachPage(store, query)) yield shares(rows)
    },
  }
}

/** The part of a row that is in a line: the line of its unit, if the row were invoiced alone. */
function shareOf(row: LedgerRow, line: DocumentLine, ratesOf: (version: number) => VersionRates): LineRow {
  if (row.model === CREDIT) return { row, quantity: 1n, amount: row.amount }
  const lines = linesOf([addTo(emptySums(row.model, row.priceVersion), row)], ratesOf)
  const share = lines.find((it) => it.unit === line.unit || (line.unit === 'rounding' && isTimed(it)))
  return { row, quantity: share?.quantity ?? 0n, amount: share?.amount ?? 0n }
}

function isTimed({ unit }: InvoiceLine): boolean {
  return unit === 'audio_minutes' || unit === 'capacity_hours'
}
