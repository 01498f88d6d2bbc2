import { Type } from 'typebox'
import { errorTable } from '../../../shared/errors.ts'
import { invoiceStates } from '../payments/payment-store.ts'
import { nullable } from '../../../server/common-schema.ts'
import { previewIdExample } from './invoice-schema.ts'

/** The drafts of a month, and what became of them. */

const draftSchema = Type.Object({
  workspace: Type.String({ example: 'acme' }),
  preview_id: Type.String({
    description: 'Send it to issue exactly this draft.',
    example: previewIdExample,
  }),
  subtotal: Type.String({ description: 'Excluding GST.', example: '100.00' }),
  gst: Type.String({ example: '10.00' }),
  total: Type.String({ description: 'Including GST.', example: '110.00' }),
  lines: Type.Integer({ description: 'How many lines it has.', example: 2 }),
  requests: Type.Integer({ example: 1043 }),
  ledger_rows: Type.Integer({ example: 1043 }),
  warnings: Type.Array(Type.String(), { description: 'What the invoice needs, but does not have yet.', example: [] }),
  obstacle: nullable(Type.String(), 'Why it cannot be issued as it is.'),
  previous: nullable(
    Type.Object({
      number: nullable(Type.String({ example: 'INV-000001' })),
      period: Type.String({ example: '2026-10' }),
      total: Type.String({ example: '98.00' }),
      state: nullable(Type.Enum([...invoiceStates])),
    }),
    'The newest invoice of the workspace, to compare with.',
  ),
})

export const draftsSchema = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(draftSchema),
  next: nullable(Type.String(), "Send it as 'after' to go on; null at the end."),
})

export const issuedDraftsSchema = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(
    Type.Object({
      workspace: Type.String({ example: 'acme' }),
      number: nullable(Type.String({ example: 'INV-000002' }), 'null: it was not issued.'),
      total: nullable(Type.String({ example: '110.00' })),
      error: nullable(
        Type.Object({ code: Type.Enum(Object.keys(errorTable)), message: Type.String() }),
        'Why it was not issued.',
      ),
    }),
  ),
})
