import { documentOf, type DocumentParts, type InvoiceDocument } from '../../billing/invoices/invoice-document.ts'
import type { DocumentLine } from '../../billing/invoices/invoice-lines.ts'
import {
  creditLines,
  linesOf,
  recomputableLines,
  totalsOf,
  type InvoiceLine,
  type VersionRates,
} from '../../billing/invoices/invoice.ts'
import type { LedgerRow } from '../rows.ts'
import { formatAud, formatCents, parseSignedAud } from '../../shared/money/money.ts'
import { parseMonth, type Month } from '../../shared/money/sydney-time.ts'
import type { PricedSums } from '../../billing/usage/usage-sums.ts'
import type { IssuedInvoice } from '../../billing/invoices/invoice-store.ts'

/** Checks issued documents against their rows, and against each other. */

/** The rows that belong to a document. */
export interface DocumentRows {
  readonly sums: readonly PricedSums[]
  readonly credits: readonly LedgerRow[]
}

type Wrong = (number: string, message: string) => void

export function checkDocument(
  invoice: IssuedInvoice,
  { sums, credits }: DocumentRows,
  ratesOf: (version: number) => VersionRates,
  wrong: Wrong,
): void {
  const { document, number } = invoice
  const month = parseMonth(invoice.period)
  if (month?.from !== invoice.periodFrom || month.to !== invoice.periodTo || document.number !== number) {
    return wrong(number, 'its period or number differs from its document')
  }
  let lines: InvoiceLine[]
  try {
    lines = [...linesOf([...sums].sort(byModelAndVersion), ratesOf), ...creditLines(credits)]
  } catch (error) {
    return wrong(number, (error as Error).message)
  }
  // Earlier versions had no lines for rounding.
  const isSame = [recomputableLines(lines), lines].some(
    (expected) => figuresOf(printed(invoice, month, expected)) === figuresOf(document),
  )
  const totals = totalsOf(lines)
  if (!isSame) {
    wrong(number, `its lines add up to ${document.lines_total}, but its rows give ${formatAud(totals.exact)}`)
  }
  const rows = sums.reduce((count, sum) => count + sum.rows, 0)
  if (rows !== document.ledger_rows) wrong(number, `its row count is ${document.ledger_rows}, but should be ${rows}`)
  for (const name of ['subtotal', 'gst', 'total'] as const) {
    if (document[name] !== formatCents(totals[name])) {
      wrong(number, `its ${name} is ${document[name]}, but should be ${formatCents(totals[name])}`)
    }
  }
}

function printed(invoice: IssuedInvoice, month: Month, lines: readonly InvoiceLine[]): InvoiceDocument {
  const { document, kind, number, issuedAt } = invoice
  const parts: DocumentParts = {
    kind,
    number,
    workspace: document.workspace,
    month,
    issuedAt,
    seller: undefined,
    buyer: document.buyer,
    purchaseOrder: null,
    lines,
    counts: { requests: 0, estimatedRequests: 0, rows: 0 },
    warnings: [],
  }
  return documentOf(parts)
}

/** The lines of a document, in any order. Wording may change from version to version; figures may not. */
function figuresOf({ lines }: InvoiceDocument): string {
  return JSON.stringify(lines.map(figures).toSorted())
}

function figures(line: DocumentLine): string {
  const { model, unit, quantity, quantity_ms: ms, rate, rate_per: per, amount, price_versions: versions } = line
  return JSON.stringify([
    model,
    unit,
    unit === 'credit' ? line.description : '',
    quantity,
    ms,
    rate,
    per,
    amount,
    versions,
  ])
}

/**
 * Notes must adjust an invoice of their month, for its buyer and by no more than its amount; only a credited invoice is
 * replaced.
 */
export function checkReferences(invoices: readonly IssuedInvoice[], wrong: Wrong): void {
  const byNumber = new Map(invoices.map((invoice) => [invoice.number, invoice]))
  const left = new Map(invoices.map(({ number, document }) => [number, parseSignedAud(document.lines_total)]))
  for (const { kind, number, period, document } of invoices) {
    if (kind !== 'adjustment_note') continue
    const adjusted = byNumber.get(document.adjusts ?? '')
    if (adjusted?.kind !== 'tax_invoice' || adjusted.period !== period) {
      wrong(number, `it adjusts ${document.adjusts}, which is no invoice of ${period}`)
      continue
    }
    if (document.buyer.name !== adjusted.document.buyer.name)
      wrong(number, `its buyer is not that of ${adjusted.number}`)
    left.set(adjusted.number, (left.get(adjusted.number) ?? 0n) + parseSignedAud(document.lines_total))
  }
  for (const { number, kind, period, document } of invoices) {
    const rest = left.get(number) ?? 0n
    if (kind === 'tax_invoice' && rest < 0n) wrong(number, `it is credited by ${formatAud(-rest)} more than it charges`)
    if (document.replaces === null) continue
    const replaced = byNumber.get(document.replaces)
    if (replaced?.kind !== 'tax_invoice' || replaced.period !== period) {
      wrong(number, `it replaces ${document.replaces}, which is no invoice of ${period}`)
    } else if (left.get(replaced.number) !== 0n) {
      wrong(
        number,
        `it replaces ${replaced.number}, of which ${formatAud(left.get(replaced.number) ?? 0n)} is not credited`,
      )
    }
  }
}

function byModelAndVersion(one: PricedSums, other: PricedSums): number {
  if (one.model !== other.model) return one.model < other.model ? -1 : 1
  return one.priceVersion - other.priceVersion
}
