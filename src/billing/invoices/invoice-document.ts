import { formatAbn } from '../../shared/money/abn.ts'
import { exactDuration } from '../../shared/money/exact-duration.ts'
import { linesOfDocument, type DocumentLine } from './invoice-lines.ts'
import { totalsOf, type InvoiceLine } from './invoice.ts'
import { formatAud, formatCents, grouped } from '../../shared/money/money.ts'
import { sydneyDate, writtenDate, type Month } from '../../shared/money/sydney-time.ts'

/** A tax invoice or adjustment note as issued. It contains everything on the page, so nothing is looked up later. */
export interface InvoiceDocument {
  readonly object: 'invoice'
  readonly kind: 'tax_invoice' | 'adjustment_note'
  /** The heading, such as "Tax invoice". */
  readonly title: string
  /** null for a preview. */
  readonly number: string | null
  readonly workspace: string
  readonly period: string
  readonly period_from: string
  readonly period_to: string
  readonly issued: string | null
  readonly due: string | null
  readonly currency: 'AUD'
  readonly seller: Party | null
  readonly buyer: Party
  /** The buyer's own number for the order, if it has one. */
  readonly purchase_order: string | null
  readonly payment: string
  /** The base URL for links to the rows behind each line; null when none is configured. */
  readonly public_url: string | null
  /** The invoice that an adjustment note adjusts; null for an invoice. */
  readonly adjusts: string | null
  /** Why the invoice was adjusted; null for an invoice. */
  readonly reason: string | null
  /** The invoice that this one replaces; null if the month was not invoiced before. */
  readonly replaces: string | null
  /** The adjustment notes that credited the replaced invoice. */
  readonly credited_by: readonly string[]
  readonly lines: readonly DocumentLine[]
  /** The sum of the lines before rounding. */
  readonly lines_total: string
  readonly subtotal: string
  readonly gst: string
  readonly total: string
  readonly requests: number
  readonly estimated_requests: number
  /** How many ledger rows the document covers. */
  readonly ledger_rows: number
  /** The sentences below the totals. */
  readonly notices: readonly string[]
  /** For the operator, and not on the page: details without which it cannot be issued. */
  readonly warnings: readonly string[]
}

export interface Party {
  readonly name: string
  readonly abn: string | null
  readonly address: string
}

export interface Seller {
  readonly name: string
  /** Eleven digits. */
  readonly abn: string
  readonly address: string
  readonly paymentDays: number
  /** How to pay, such as an account and a reference. */
  readonly paymentDetails: string
  /** The base URL at which buyers reach the API. */
  readonly publicUrl: string | undefined
}

/** How a document refers to earlier ones. */
export type Reference =
  | { readonly kind: 'adjusts'; readonly number: string; readonly reason: string }
  | { readonly kind: 'replaces'; readonly number: string; readonly creditedBy: readonly string[] }

export interface DocumentParts {
  readonly kind: InvoiceDocument['kind']
  readonly number: string | null
  readonly workspace: string
  readonly month: Month
  readonly issuedAt: number | null
  readonly seller: Seller | undefined
  readonly buyer: Party
  readonly purchaseOrder: string | null
  readonly lines: readonly InvoiceLine[]
  readonly counts: { readonly requests: number; readonly estimatedRequests: number; readonly rows: number }
  readonly refersTo?: Reference | undefined
  readonly warnings: readonly string[]
}

const DAY_MS = 86_400_000

export function documentOf(parts: DocumentParts): InvoiceDocument {
  const { kind, number, month, issuedAt, seller, lines, counts, refersTo } = parts
  const { exact, subtotal, gst, total } = totalsOf(lines)
  const [from, to] = [sydneyDate(month.from), sydneyDate(month.to - 1)]
  const due =
    issuedAt === null || !seller || kind === 'adjustment_note'
      ? null
      : sydneyDate(issuedAt + seller.paymentDays * DAY_MS)
  const payment = seller ? paymentOf(parts, seller, due) : ''
  return {
    object: 'invoice',
    kind,
    title: titleOf(kind, number),
    number,
    workspace: parts.workspace,
    period: month.name,
    period_from: from,
    period_to: to,
    issued: issuedAt === null ? null : sydneyDate(issuedAt),
    due,
    currency: 'AUD',
    seller: seller ? { name: seller.name, abn: formatAbn(seller.abn), address: seller.address } : null,
    buyer: parts.buyer,
    purchase_order: parts.purchaseOrder,
    payment,
    public_url: seller?.publicUrl ?? null,
    adjusts: refersTo?.kind === 'adjusts' ? refersTo.number : null,
    reason: refersTo?.kind === 'adjusts' ? refersTo.reason : null,
    replaces: refersTo?.kind === 'replaces' ? refersTo.number : null,
    credited_by: refersTo?.kind === 'replaces' ? refersTo.creditedBy : [],
    lines: linesOfDocument(lines, rowsQueryOf(parts, from, to)),
    lines_total: formatAud(exact),
    subtotal: formatCents(subtotal),
    gst: formatCents(gst),
    total: formatCents(total),
    requests: counts.requests,
    estimated_requests: counts.estimatedRequests,
    ledger_rows: counts.rows,
    notices: noticesOf(payment, counts),
    warnings: parts.warnings,
  }
}

/** A stored document, completed with fields that earlier versions of Weir did not store. */
export function completeDocument(stored: StoredDocument): InvoiceDocument {
  const { requests, estimated_requests: estimatedRequests, ledger_rows: rows, payment } = stored
  return {
    title: titleOf(stored.kind, stored.number),
    purchase_order: null,
    replaces: null,
    credited_by: [],
    notices: noticesOf(payment, { requests, estimatedRequests, rows }),
    warnings: [],
    ...stored,
    lines: stored.lines.map((line) => ({ quantity_text: quantityText(line), ...line })),
  }
}

type Later = 'title' | 'purchase_order' | 'replaces' | 'credited_by' | 'notices' | 'warnings'
export interface StoredDocument extends Omit<InvoiceDocument, Later | 'lines'>, Partial<Pick<InvoiceDocument, Later>> {
  readonly lines: readonly (Omit<DocumentLine, 'quantity_text'> & Partial<Pick<DocumentLine, 'quantity_text'>>)[]
}

function quantityText({ unit, quantity, quantity_ms: ms }: Omit<DocumentLine, 'quantity_text'>): string {
  return ms === null ? grouped(quantity) : exactDuration(BigInt(ms), unit === 'capacity_hours' ? 'h' : 'min')
}

function titleOf(kind: InvoiceDocument['kind'], number: string | null): string {
  if (number === null) return 'Preview: not a tax invoice'
  return kind === 'tax_invoice' ? 'Tax invoice' : 'Adjustment note'
}

function rowsQueryOf({ kind, number, refersTo }: DocumentParts, from: string, to: string): URLSearchParams {
  const isFirst = kind === 'tax_invoice' && refersTo === undefined
  return new URLSearchParams(isFirst ? { from, to, credit_note: '' } : { credit_note: number ?? '' })
}

function paymentOf({ refersTo, number }: DocumentParts, seller: Seller, due: string | null): string {
  if (refersTo?.kind === 'adjusts') return `This amount is deducted from what is owed on ${refersTo.number}.`
  const { paymentDays: days, paymentDetails } = seller
  const terms = days === 0 ? 'Payable on receipt' : `Payable within ${countOf(days, 'day')}`
  const by = due === null || days === 0 ? '' : `, by ${writtenDate(due)}`
  const quote = number === null ? '' : ` Please quote ${number}.`
  return [`${terms}${by}.${quote}`, paymentDetails].filter((text) => text !== '').join('\n')
}

function noticesOf(payment: string, { requests, estimatedRequests }: DocumentParts['counts']): readonly string[] {
  const estimated =
    estimatedRequests === 0
      ? ''
      : `, of which ${countOf(estimatedRequests, 'was', 'were')} estimated because the engine reported no usage`
  return [
    payment,
    'Amounts are in Australian dollars. Each line is its quantity at its rate, exactly. The subtotal is the sum of the lines, rounded once, half up, to cents. GST is 10 % of the subtotal, rounded half up to cents.',
    requests === 0 ? '' : `${countOf(requests, 'request')}${estimated}.`,
  ].filter((text) => text !== '')
}

/** "1 request", "1,200 requests". */
function countOf(count: number, one: string, many = `${one}s`): string {
  return `${grouped(String(count))} ${count === 1 ? one : many}`
}
