import type { DocumentLine, InvoiceDocument } from '../core/money/invoice-document.ts'

/** Wording that the HTML page and the PDF of an invoice share. */

export function headingOf({ kind, number }: InvoiceDocument): string {
  if (number === null) return 'Preview: not a tax invoice'
  return kind === 'tax_invoice' ? 'Tax invoice' : 'Adjustment note'
}

/** "-9384.8726238" → "-9,384.8726238" */
export function grouped(amount: string): string {
  const [whole = '', ...fraction] = amount.split('.')
  return [whole.replaceAll(/\B(?=(\d{3})+$)/g, ','), ...fraction].join('.')
}

/** The full URL of a line's rows; undefined when the invoice has no public URL. */
export function rowsLink({ public_url: base }: InvoiceDocument, { rows }: DocumentLine): string | undefined {
  return base ? base + rows : undefined
}

export function noticesOf(invoice: InvoiceDocument): readonly string[] {
  const { payment, requests, estimated_requests: estimated } = invoice
  return [
    payment,
    'Lines are exact. The subtotal is their sum, rounded once, half up, to cents; GST is 10 % of the subtotal, half up.',
    `${grouped(String(requests))} requests${estimated > 0 ? `, of which ${grouped(String(estimated))} were estimated because the engine reported no usage` : ''}. Each line's rows can be downloaded with a key of the workspace.`,
  ].filter((text) => text !== '')
}
