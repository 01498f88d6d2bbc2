import Type from 'typebox'
import { units } from '../../core/money/invoice.ts'
import { nullable } from '../common-schema.ts'

/** Invoices and adjustment notes, as they are issued. */

const partySchema = Type.Object({ name: Type.String(), abn: nullable(Type.String()), address: Type.String() })

const lineSchema = Type.Object({
  description: Type.String(),
  model: Type.String(),
  unit: Type.Enum([...units]),
  quantity_text: Type.String({ description: 'In full, as printed, such as "42,500,123" or "62 min 5.5 s".' }),
  quantity: Type.String({ description: 'Minutes and hours are rounded to four decimals; quantity_ms is exact.' }),
  quantity_ms: nullable(Type.String()),
  rate: Type.String({ description: 'AUD for rate_per.' }),
  rate_per: Type.String(),
  amount: Type.String({ description: 'AUD, exact.' }),
  price_versions: Type.Array(Type.Integer()),
  rows: Type.String({ description: 'Where the rows of the line can be downloaded, with a key of the workspace.' }),
  link: Type.Optional(
    nullable(Type.String(), 'A web page with the rows of the line, for whoever has the link. It expires.'),
  ),
})

export const invoiceSchema = Type.Object({
  object: Type.Literal('invoice'),
  kind: Type.Enum(['tax_invoice', 'adjustment_note']),
  title: Type.String({ description: 'The heading, such as "Tax invoice".' }),
  number: nullable(Type.String(), 'null: a preview.'),
  workspace: Type.String(),
  period: Type.String({ description: 'A month, such as 2026-11.' }),
  period_from: Type.String(),
  period_to: Type.String(),
  issued: nullable(Type.String()),
  due: nullable(Type.String()),
  currency: Type.Literal('AUD'),
  seller: nullable(partySchema),
  buyer: partySchema,
  purchase_order: nullable(Type.String()),
  payment: Type.String(),
  public_url: nullable(Type.String(), 'Where the buyer reaches the API.'),
  adjusts: nullable(Type.String(), 'For an adjustment note: the number of the invoice.'),
  reason: nullable(Type.String()),
  replaces: nullable(Type.String(), 'The invoice that this one replaces, if the month was issued again.'),
  credited_by: Type.Array(Type.String(), { description: 'The adjustment notes that credited the replaced invoice.' }),
  lines: Type.Array(lineSchema),
  lines_total: Type.String({ description: 'The sum of the lines before rounding.' }),
  subtotal: Type.String({ description: 'Excluding GST.' }),
  gst: Type.String(),
  total: Type.String({ description: 'Including GST.' }),
  requests: Type.Integer(),
  estimated_requests: Type.Integer(),
  ledger_rows: Type.Integer({ description: 'How many rows of the ledger the document covers.' }),
  notices: Type.Array(Type.String(), { description: 'The sentences below the totals.' }),
  warnings: Type.Array(Type.String(), {
    description: 'For the operator, and not printed: what the invoice should have, but does not need.',
  }),
  links_until: Type.Optional(nullable(Type.String(), 'The last day on which the links work.')),
})
