import { Type } from 'typebox'
import { units } from '../invoice.ts'
import { invoiceStates } from '../payments/payment-store.ts'
import { EXAMPLE_MODEL, EXAMPLE_TIME, exampleOf, nullable } from '../../../server/common-schema.ts'

/** Invoices and adjustment notes, as they are issued. */

const partySchema = Type.Object({
  name: Type.String({ example: 'Acme Pty Ltd' }),
  abn: nullable(Type.String()),
  address: Type.String({ example: '2 River Road, Sydney' }),
})
const sellerExample = { name: 'Example Pty Ltd', abn: '51 824 753 556', address: '1 Lock Street, Sydney' }

const payment = 'Payment within 14 days, by 2026-12-15.'

const lineSchema = Type.Object({
  description: Type.String({ example: `${EXAMPLE_MODEL}: input tokens` }),
  model: Type.String({ example: EXAMPLE_MODEL }),
  unit: Type.Enum([...units]),
  quantity_text: Type.String({
    description: 'In full, as printed, such as "42,500,123" or "62 min 5.5 s".',
    example: '1,000,000,000',
  }),
  quantity: Type.String({
    description: 'Minutes and hours are rounded to four decimals; quantity_ms is exact.',
    example: '1000000000',
  }),
  quantity_ms: nullable(Type.String()),
  rate: Type.String({ description: 'AUD for rate_per.', example: '0.10' }),
  rate_per: Type.String({ example: '1M tokens' }),
  amount: Type.String({ description: 'AUD, exact.', example: '100.00' }),
  price_versions: Type.Array(Type.Integer({ example: 1 })),
  rows: Type.String({
    description: 'Where the rows of the line can be downloaded, with a key of the workspace.',
    example: `/api/v1/usage?from=2026-11-01&to=2026-11-30&model=${EXAMPLE_MODEL}&price_versions=1`,
  }),
  link: Type.Optional({
    ...nullable(Type.String(), 'A web page with the rows of the line, for anyone with the link. It expires.'),
    example: null,
  }),
})

const balanceSchema = Type.Object({
  state: Type.Enum([...invoiceStates], {
    description: 'credited: in full, and nothing was paid. refund_due: more was paid than is owed after credits.',
  }),
  credited: Type.String({ description: 'By adjustment notes, including GST.', example: '0.00' }),
  paid: Type.String({ description: 'Less what was paid back.', example: '0.00' }),
  amount_due: Type.String({
    description: 'The total less credits and payments. Negative: to be paid back.',
    example: '110.00',
  }),
  payments: Type.Array(
    Type.Object({
      id: Type.Integer({ description: 'Counts the payments of the invoice from 1.', example: 1 }),
      paid_on: Type.String({ example: '2026-12-03' }),
      amount: Type.String({ description: 'Negative: paid back to the buyer.', example: '110.00' }),
      reference: Type.String({ example: 'NAB 20261203-17' }),
      recorded: Type.String({ example: EXAMPLE_TIME }),
    }),
    { example: [] },
  ),
})

export const invoiceSchema = Type.Object({
  object: Type.Literal('invoice'),
  kind: Type.Enum(['tax_invoice', 'adjustment_note']),
  title: Type.String({ description: 'The heading, such as "Tax invoice".', example: 'Tax invoice' }),
  number: nullable(Type.String({ example: 'INV-000001' }), 'null: a preview.'),
  workspace: Type.String({ example: 'acme' }),
  period: Type.String({ description: 'A month, such as 2026-11.', example: '2026-11' }),
  period_from: Type.String({ example: '2026-11-01' }),
  period_to: Type.String({ example: '2026-11-30' }),
  issued: nullable(Type.String({ example: '2026-12-01' })),
  due: nullable(Type.String({ example: '2026-12-15' })),
  currency: Type.Literal('AUD'),
  seller: { ...nullable(partySchema), example: sellerExample },
  buyer: partySchema,
  purchase_order: nullable(Type.String()),
  payment: Type.String({ example: payment }),
  public_url: nullable(Type.String(), 'Where the buyer reaches the API.'),
  adjusts: nullable(Type.String(), 'For an adjustment note: the number of the invoice.'),
  reason: nullable(Type.String()),
  replaces: nullable(Type.String(), 'The invoice that this one replaces, if the month was issued again.'),
  credited_by: Type.Array(Type.String(), {
    description: 'The adjustment notes that credited the replaced invoice.',
    example: [],
  }),
  lines: Type.Array(lineSchema),
  lines_total: Type.String({ description: 'The sum of the lines before rounding.', example: '100.00' }),
  subtotal: Type.String({ description: 'Excluding GST.', example: '100.00' }),
  gst: Type.String({ example: '10.00' }),
  total: Type.String({ description: 'Including GST.', example: '110.00' }),
  requests: Type.Integer({ example: 1043 }),
  estimated_requests: Type.Integer(),
  ledger_rows: Type.Integer({ description: 'How many rows of the ledger the document covers.', example: 1043 }),
  notices: Type.Array(Type.String({ example: payment }), { description: 'The sentences below the totals.' }),
  warnings: Type.Array(Type.String(), {
    description: 'For the operator, and not printed: what the invoice needs, but does not have yet.',
    example: [],
  }),
  balance: {
    ...nullable(balanceSchema, 'What is owed on the invoice now. null: a preview or an adjustment note.'),
    example: exampleOf(balanceSchema),
  },
  links_until: Type.Optional(nullable(Type.String(), 'The last day on which the links work.')),
})

const emailSchema = Type.Object({
  state: Type.Enum(['queued', 'sent', 'failed'], {
    description: 'failed: it is not tried again, unless you ask for it.',
    example: 'sent',
  }),
  recipient: Type.String({ example: 'accounts@example.com' }),
  attempts: Type.Integer({ description: 'How often sending was tried.', example: 1 }),
  sent_at: nullable(Type.String({ example: EXAMPLE_TIME })),
  next_attempt_at: nullable(Type.String(), 'null: it is not tried again.'),
  last_error: nullable(Type.String(), 'Why the last attempt failed.'),
})

/** The operator also sees whether the document was sent. */
export const operatorInvoiceSchema = Type.Object({
  ...invoiceSchema.properties,
  email: {
    ...nullable(emailSchema, 'The e-mail with this document. null: there is none.'),
    example: exampleOf(emailSchema),
  },
})

export const numberParameter = { description: 'The number of an invoice or adjustment note.', example: 'INV-000001' }

export const previewIdExample = '9f2c41d07a6be83514c0d92e7b1f6a35'

/** An invoice, and an adjustment note. */
export const invoiceExample = exampleOf(invoiceSchema) as object

export const adjustmentExample = {
  ...invoiceExample,
  kind: 'adjustment_note',
  title: 'Adjustment note',
  number: 'ADJ-000001',
  due: null,
  payment: '',
  balance: null,
  email: null,
  adjusts: 'INV-000001',
  reason: 'Slow answers on 3 November',
  lines: [
    {
      ...(exampleOf(lineSchema) as object),
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
  state: Type.Optional(Type.Enum([...invoiceStates], { description: 'Only tax invoices in this state.' })),
  before: Type.Optional(Type.String({ maxLength: 100, description: "The 'next' of the previous page." })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: '1 to 100, by default 50.' })),
})
