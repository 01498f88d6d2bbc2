import { Type } from 'typebox'
import { units } from '../invoice.ts'
import { nullable } from '../../../server/common-schema.ts'

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
    nullable(Type.String(), 'A web page with the rows of the line, for anyone with the link. It expires.'),
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

const lineExample = {
  description: 'huggingfacetb/smollm2-135m-instruct: input tokens',
  model: 'huggingfacetb/smollm2-135m-instruct',
  unit: 'input_tokens',
  quantity_text: '1,000,000,000',
  quantity: '1000000000',
  quantity_ms: null,
  rate: '0.10',
  rate_per: '1M tokens',
  amount: '100.00',
  price_versions: [1],
  rows: '/api/v1/usage?from=2026-11-01&to=2026-11-30&model=huggingfacetb/smollm2-135m-instruct&price_versions=1',
  link: null,
}

export const invoiceExample = {
  object: 'invoice',
  kind: 'tax_invoice',
  title: 'Tax invoice',
  number: 'INV-000001',
  workspace: 'acme',
  period: '2026-11',
  period_from: '2026-11-01',
  period_to: '2026-11-30',
  issued: '2026-12-01',
  due: '2026-12-15',
  currency: 'AUD',
  seller: { name: 'Example Pty Ltd', abn: '51 824 753 556', address: '1 Lock Street, Sydney' },
  buyer: { name: 'Acme Pty Ltd', abn: null, address: '2 River Road, Sydney' },
  purchase_order: null,
  payment: 'Payment within 14 days, by 2026-12-15.',
  public_url: null,
  adjusts: null,
  reason: null,
  replaces: null,
  credited_by: [],
  lines: [lineExample],
  lines_total: '100.00',
  subtotal: '100.00',
  gst: '10.00',
  total: '110.00',
  requests: 1043,
  estimated_requests: 0,
  ledger_rows: 1043,
  notices: ['Payment within 14 days, by 2026-12-15.'],
  warnings: [],
}

export const adjustmentExample = {
  ...invoiceExample,
  kind: 'adjustment_note',
  title: 'Adjustment note',
  number: 'ADJ-000001',
  due: null,
  payment: '',
  adjusts: 'INV-000001',
  reason: 'Slow answers on 3 November',
  lines: [
    {
      ...lineExample,
      description: 'Credit: Slow answers on 3 November',
      model: 'credit',
      unit: 'credit',
      quantity_text: '1',
      quantity: '1',
      rate: '-25.00',
      rate_per: 'credit',
      amount: '-25.00',
      price_versions: [],
    },
  ],
  lines_total: '-25.00',
  subtotal: '-25.00',
  gst: '-2.50',
  total: '-27.50',
  requests: 0,
  ledger_rows: 1,
  notices: [],
}

export const invoicePageQuery = Type.Object({
  before: Type.Optional(Type.String({ maxLength: 100, description: "The 'next' of the previous page." })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: '1 to 100, by default 50.' })),
})
