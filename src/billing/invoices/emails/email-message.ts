import { fullTitle, headlineOf, type PrintableInvoice } from '../invoice-wording.ts'

/** What the e-mail of an issued document says. The document itself is attached. */
export function emailMessage(invoice: PrintableInvoice): { readonly subject: string; readonly text: string } {
  const { kind, payment, adjusts, buyer, seller, period_from: from, period_to: to } = invoice
  const [label, amount, by] = headlineOf(invoice)
  const owed = [`${label}: ${amount}`, by].filter((text) => text !== '').join(' ')
  const paragraphs = [
    `${fullTitle(invoice)} for ${buyer.name}, ${from} to ${to}, is attached.`,
    kind === 'adjustment_note' ? `${owed}\nIt adjusts ${adjusts}.` : owed,
    by === '' ? '' : payment,
    seller?.name ?? '',
  ]
  return {
    subject: [fullTitle(invoice), ...(seller ? [`from ${seller.name}`] : [])].join(' '),
    text: `${paragraphs.filter((text) => text !== '').join('\n\n')}\n`,
  }
}
