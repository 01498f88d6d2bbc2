import type { InvoiceDocument, Party } from './invoice-document.ts'
import type { InvoiceBalance } from './payments/balances.ts'
import type { DocumentLine } from './invoice-lines.ts'
import { grouped } from '../../shared/money/money.ts'
import { writtenDate } from '../../shared/money/sydney-time.ts'

/** What the page, the PDF and the terminal print, in the same words. Only the layout differs. */

/** A line whose rows can be viewed in a browser. */
export interface LinkedLine extends DocumentLine {
  /** A signed link that expires; null when no public URL is configured. */
  readonly link?: string | null
}

/** A document as it is delivered: what was issued, with links to the rows of its lines. */
export interface PrintableInvoice extends InvoiceDocument {
  readonly lines: readonly LinkedLine[]
  /** The last day on which the links work, such as 2027-02-13; null when there are none. */
  readonly links_until?: string | null
  /** What is owed on it now; null for a preview or a note. */
  readonly balance?: InvoiceBalance | null
}

export const COLUMNS = ['Description', 'Quantity', 'Rate (AUD)', 'Amount (AUD)'] as const

/** "Tax invoice INV-000001" */
export function fullTitle({ title, number }: InvoiceDocument): string {
  return number === null ? title : `${title} ${number}`
}

/** The parties, each as its role, its name and the lines below that. */
export function partiesOf({ seller, buyer }: InvoiceDocument): readonly (readonly [string, string, string])[] {
  return [
    seller ? ['From', seller.name, detailsOf(seller)] : ['From', 'The seller is not configured.', ''],
    ['To', buyer.name, detailsOf(buyer)],
  ]
}

function detailsOf({ abn, address }: Party): string {
  return [abn === null ? '' : `ABN ${abn}`, address].filter((text) => text !== '').join('\n')
}

export function factsOf(invoice: InvoiceDocument): readonly (readonly [string, string])[] {
  const { credited_by: notes } = invoice
  const facts: readonly (readonly [string, string | null])[] = [
    ['Number', invoice.number],
    ['Date of issue', invoice.issued && writtenDate(invoice.issued)],
    ['Period', `${writtenDate(invoice.period_from)} to ${writtenDate(invoice.period_to)}`],
    ['Due', invoice.kind === 'tax_invoice' ? invoice.due && writtenDate(invoice.due) : null],
    ['Purchase order', invoice.purchase_order],
    ['Adjusts', invoice.adjusts],
    ['Replaces', invoice.replaces && `${invoice.replaces}, credited by ${notes.join(', ')}`],
    ['Reason', invoice.reason],
  ]
  return facts.flatMap(([name, value]) => (value === null ? [] : [[name, value] as const]))
}

/** The cells of a line, in the order of the columns. */
export function cellsOf(line: DocumentLine): readonly [string, string, string, string] {
  return [line.description, line.quantity_text, `${grouped(line.rate)} / ${line.rate_per}`, grouped(line.amount)]
}

export function noticesOf({ notices, links_until: until }: PrintableInvoice): readonly string[] {
  return until ? [...notices, `The link of each line shows its rows, until ${writtenDate(until)}.`] : notices
}

export function totalRowsOf(invoice: InvoiceDocument): readonly (readonly [string, string])[] {
  return [
    ['Sum of the lines', grouped(invoice.lines_total)],
    ['Subtotal, excluding GST', grouped(invoice.subtotal)],
    ['GST 10 %', grouped(invoice.gst)],
    ['Total, AUD including GST', grouped(invoice.total)],
  ]
}
