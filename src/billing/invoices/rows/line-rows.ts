import { ApiError } from '../../../shared/errors.ts'
import type { InvoiceDocument } from '../invoice-document.ts'
import type { DocumentLine } from '../invoice-lines.ts'
import { linesOf, timedAmount, type InvoiceLine, type VersionRates } from '../invoice.ts'
import { CREDIT, type LedgerRow } from '../../../ledger/rows.ts'
import { formatAud, type PicoAud } from '../../../shared/money/money.ts'
import type { InvoiceStore } from '../invoice-store.ts'
import type { AccountStore } from '../../../workspaces/account-store.ts'
import type { UsageQuery, UsageStore } from '../../usage/usage-store.ts'
import { eachPage } from '../../usage/usage-export.ts'
import { addTo, emptySums } from '../priced-sums.ts'
import { versionRates } from '../../prices/version-rates.ts'

/** The rows behind one line of an issued document, each with its share of the line. The shares add up to the line. */
export interface LineRows {
  readonly document: InvoiceDocument
  readonly line: DocumentLine
  /** One page of rows, oldest first. */
  page(after: RowPosition | undefined, limit: number): Promise<readonly LineRow[]>
  /** All rows, page by page. */
  all(): AsyncGenerator<readonly LineRow[]>
}

export interface LineRow {
  readonly row: LedgerRow
  /** What the row adds to the line's quantity: tokens, images or milliseconds; 1 for a credit. */
  readonly quantity: bigint
  /** What the row adds to the line's amount. */
  readonly amount: PicoAud
  /** The quantity of the line up to and including this row. */
  readonly quantitySoFar: bigint
}

/** The row of a line after which a page begins. */
export interface RowPosition {
  readonly settledAt: number
  readonly requestId: string
  readonly quantitySoFar: bigint
}

export type LineRowsStore = AccountStore & UsageStore & InvoiceStore

/** `workspaceId`: the documents of any other workspace are not found. */
export async function findLineRows(
  store: LineRowsStore,
  number: string,
  lineNumber: string,
  workspaceId?: string,
): Promise<LineRows> {
  const [invoice] = await store.invoices({ number })
  const line = /^[1-9]\d{0,5}$/.test(lineNumber) ? invoice?.document.lines[Number(lineNumber) - 1] : undefined
  if (!invoice || !line || (workspaceId !== undefined && invoice.workspaceId !== workspaceId)) {
    throw new ApiError('not_found', 'There is no such line.')
  }
  const { document, periodFrom, periodTo, issuedAt } = invoice
  const isFirst = document.kind === 'tax_invoice' && document.replaces === null
  const query: UsageQuery = {
    workspaceId: invoice.workspaceId,
    from: isFirst ? periodFrom : issuedAt,
    to: isFirst ? periodTo : issuedAt + 1,
    creditNote: isFirst ? '' : number,
    model: line.model,
    priceVersions: line.price_versions,
    limit: 0,
  }
  const ratesOf = versionRates(await store.priceVersions())
  return {
    document,
    line,
    page: async (after, limit) =>
      sharesOf(await store.usage({ ...query, after, limit }), line, ratesOf, after?.quantitySoFar ?? 0n),
    async *all() {
      let soFar = 0n
      for await (const rows of eachPage(store, query)) {
        const shares = sharesOf(rows, line, ratesOf, soFar)
        soFar = shares.at(-1)?.quantitySoFar ?? soFar
        yield shares
      }
    },
  }
}

/** Where the next page begins, as text. */
export function nextRows(rows: readonly LineRow[]): string {
  const last = rows.at(-1)
  return `${last?.row.settledAt ?? 0}_${last?.quantitySoFar ?? 0n}_${last?.row.requestId ?? ''}`
}

/** Reads what `nextRows` writes. */
export function rowsAfter(text: string | undefined): RowPosition | undefined {
  if (text === undefined) return undefined
  const [, settledAt, quantity, requestId] = /^(\d{1,16})_(-?\d{1,30})_(.{1,400})$/.exec(text) ?? []
  if (settledAt === undefined || quantity === undefined || requestId === undefined) {
    throw new ApiError('invalid_value', "'after' must be the 'next' value of the previous page.", { param: 'after' })
  }
  return { settledAt: Number(settledAt), requestId, quantitySoFar: BigInt(quantity) }
}

export function lineRowView({ row, quantity, amount }: LineRow) {
  return {
    request_id: row.requestId,
    started: new Date(row.startedAt).toISOString(),
    settled: new Date(row.settledAt).toISOString(),
    quantity: quantity.toString(),
    amount: formatAud(amount),
    estimated: row.estimated,
    outcome: row.outcome,
    corrects: row.correction?.of ?? null,
    reason: row.correction?.reason ?? row.credit?.reason ?? null,
  }
}

function sharesOf(
  rows: readonly LedgerRow[],
  line: DocumentLine,
  ratesOf: (version: number) => VersionRates,
  before: bigint,
): readonly LineRow[] {
  let soFar = before
  return rows.map((row) => {
    const { quantity, amount, rate, unit } = partOf(row, line, ratesOf)
    const begin = soFar
    soFar += quantity
    return { row, quantity, amount: shareOf(amount, line, { unit, rate, begin, end: soFar }), quantitySoFar: soFar }
  })
}

/** The part of a row that is in a line: the line of its unit, if the row were invoiced alone. */
function partOf(
  row: LedgerRow,
  line: DocumentLine,
  ratesOf: (version: number) => VersionRates,
): Pick<InvoiceLine, 'unit' | 'quantity' | 'rate' | 'amount'> {
  if (row.model === CREDIT) return { unit: 'credit', quantity: 1n, rate: row.amount, amount: row.amount }
  const lines = linesOf([addTo(emptySums(row.model, row.priceVersion), row)], ratesOf)
  const isOf = ({ unit }: InvoiceLine): boolean =>
    unit === line.unit || (line.unit === 'rounding' && (unit === 'audio_minutes' || unit === 'capacity_hours'))
  return lines.find(isOf) ?? { unit: line.unit, quantity: 0n, rate: 0n, amount: 0n }
}

/**
 * Time is rounded to the pico-AUD in each row, but the line costs its whole quantity, rounded once; a line of its own
 * has the difference. So a row adds to the first line the growth of its rounded amount, and the rest to the second.
 */
function shareOf(
  amount: PicoAud,
  line: DocumentLine,
  part: { readonly unit: InvoiceLine['unit']; readonly rate: PicoAud; readonly begin: bigint; readonly end: bigint },
): PicoAud {
  const begin = timedAmount(part.unit, part.begin, part.rate)
  const end = timedAmount(part.unit, part.end, part.rate)
  if (begin === undefined || end === undefined) return amount
  return line.unit === 'rounding' ? amount - (end - begin) : end - begin
}
