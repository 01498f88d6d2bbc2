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

/** What the reader looks for first: a label, an amount, and by when it is to be paid ('' if it is not). */
export function headlineOf(invoice: PrintableInvoice): readonly [string, string, string] {
  const { kind, number, total, due, balance } = invoice
  if (number === null) return ['Total so far, including GST', `A$${grouped(total)}`, '']
  if (kind === 'adjustment_note') return ['Credited, including GST', `A$${grouped(total.replace('-', ''))}`, '']
  const open = balance?.amount_due ?? total
  if (open.startsWith('-')) return ['To be paid back', `A$${grouped(open.slice(1))}`, '']
  const isOpen = /[1-9]/.test(open)
  return ['Amount due', `A$${grouped(open)}`, isOpen && due !== null ? `by ${writtenDate(due)}` : '']
}

/** More payments than these are added up, so that the totals stay on one page. */
const MAX_PAYMENTS = 10

/** From the total to what is due, once something was credited or paid. */
export function balanceRowsOf({ balance }: PrintableInvoice): readonly (readonly [string, string])[] {
  if (!balance || (Number(balance.credited) === 0 && balance.payments.length === 0)) return []
  const { credited, paid, payments, amount_due } = balance
  const paidRows =
    payments.length > MAX_PAYMENTS
      ? [[`Paid in ${payments.length} payments`, opposite(paid)] as const]
      : payments.map((it) => [`Paid on ${writtenDate(it.paid_on)}, ${it.reference}`, opposite(it.amount)] as const)
  return [
    ...(Number(credited) === 0 ? [] : [['Credited', opposite(credited)] as const]),
    ...paidRows,
    ['Amount due, AUD', grouped(amount_due)],
  ]
}

function opposite(amount: string): string {
  return grouped(amount.startsWith('-') ? amount.slice(1) : `-${amount}`)
}

/** The part of an amount from its decimal point on. Amounts are aligned at the point, whatever follows it. */
export function fractionOf(amount: string): string {
  return amount.slice(amount.indexOf('.'))
}

/** All amounts of the last column. */
export function amountsOf(invoice: PrintableInvoice): readonly string[] {
  const rows = [...totalRowsOf(invoice), ...balanceRowsOf(invoice)]
  return [...invoice.lines.map(({ amount }) => grouped(amount)), ...rows.map(([, amount]) => amount)]
}

export function totalRowsOf(invoice: InvoiceDocument): readonly (readonly [string, string])[] {
  return [
    ['Sum of the lines', grouped(invoice.lines_total)],
    ['Subtotal, excluding GST', grouped(invoice.subtotal)],
    ['GST 10 %', grouped(invoice.gst)],
    ['Total, AUD including GST', grouped(invoice.total)],
  ]
}
