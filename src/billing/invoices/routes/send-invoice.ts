import { Type } from 'typebox'
import { invoiceHtml } from '../invoice-html.ts'
import { pdfInThread } from '../pdf/pdf-in-thread.ts'
import type { RowLinks } from '../rows/row-links.ts'
import type { Invoicing } from '../invoices.ts'
import type { InvoiceDocument } from '../invoice-document.ts'
import { binarySchema, textSchema } from '../../../server/common-schema.ts'
import type { Exchange } from '../../../server/exchange.ts'
import { invoiceSchema } from './invoice-schema.ts'
import { jsonResponse, type ResponseDescription } from '../../../server/route.ts'

/** An invoice in the format that the caller asks for, for members of its workspace and for the operator. */

export interface SendInvoiceParts {
  readonly invoicing: Pick<Invoicing, 'balanced'>
  readonly rowLinks: RowLinks
  /** Files of further fonts for PDFs. */
  readonly invoiceFonts: readonly string[]
}

const formats = ['json', 'html', 'pdf'] as const
export type InvoiceFormat = (typeof formats)[number]

export const invoiceFormatQuery = Type.Object({
  format: Type.Optional(Type.Enum([...formats], { description: 'json (default), a web page, or a PDF.' })),
})

export const invoiceResponse: ResponseDescription = {
  status: 200,
  content: {
    ...jsonResponse(invoiceSchema).content,
    'text/html': { schema: textSchema, example: '<!doctype html><title>Tax invoice INV-000001</title>…' },
    'application/pdf': { schema: binarySchema, example: '%PDF-1.7 …' },
  },
}

export async function sendInvoice(
  exchange: Exchange,
  format: InvoiceFormat,
  document: InvoiceDocument,
  { invoicing, rowLinks, invoiceFonts }: SendInvoiceParts,
): Promise<void> {
  const printable = await rowLinks.linked(await invoicing.balanced(document))
  switch (format) {
    case 'json':
      return exchange.sendJson(JSON.stringify(printable))
    case 'html':
      return exchange.send(200, 'text/html; charset=utf-8', invoiceHtml(printable))
    case 'pdf':
      return exchange.send(200, 'application/pdf', await pdfInThread(exchange, printable, invoiceFonts), {
        'Content-Disposition': `inline; filename="${document.number ?? 'preview'}.pdf"`,
      })
  }
}
