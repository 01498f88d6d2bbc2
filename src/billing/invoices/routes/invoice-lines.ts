import { Readable } from 'node:stream'
import { Type } from 'typebox'
import { findLineRows, lineRowView, nextRows, rowsAfter, type LineRowsStore } from '../rows/line-rows.ts'
import { rowsCsv } from '../rows/row-page.ts'
import { units } from '../invoice.ts'
import { EXAMPLE_MODEL, EXAMPLE_TIME, nullable, textSchema } from '../../../server/common-schema.ts'
import { jsonResponse } from '../../../server/route.ts'
import { keyRoute, type KeyRoute } from '../../../server/key-route.ts'

/** The rows behind a line of an invoice, for the keys and members of its workspace. */

export interface InvoiceLinesParts {
  readonly invoices: LineRowsStore
}

const rowSchema = Type.Object({
  request_id: Type.String({ example: '0mgx1vk2v5f0c7d9e2b14a6f8d3e5c70' }),
  started: Type.String({ example: EXAMPLE_TIME }),
  settled: Type.String({ example: '2026-11-15T22:04:05.640Z' }),
  quantity: Type.String({
    description: "What the row adds to the line's quantity. Times are milliseconds.",
    example: '27',
  }),
  amount: Type.String({
    description: "What the row adds to the line's amount: AUD, exact, excluding GST.",
    example: '0.0000027',
  }),
  estimated: Type.Boolean(),
  outcome: Type.String({ example: 'completed' }),
  corrects: nullable(Type.String()),
  reason: nullable(Type.String()),
})

const DEFAULT_ROWS = 100

export function invoiceLinesRoute({ invoices }: InvoiceLinesParts): KeyRoute {
  return keyRoute({
    method: 'GET',
    path: '/invoices/{number}/lines/{line}',
    id: 'invoiceLine',
    roles: ['workspace_admin'],
    summary: 'Rows of an invoice line, with a key',
    description:
      "The rows behind one line of an invoice of this workspace, oldest first, with the part that each adds to the line: together they are the line. 'rows' of a line leads here.",
    parameters: {
      number: { description: 'The number of an invoice.', example: 'INV-000001' },
      line: { description: 'Which line, from 1.', example: '1' },
    },
    query: Type.Object({
      format: Type.Optional(Type.Enum(['json', 'csv'], { description: 'A page of rows (default), or all as CSV.' })),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, description: 'Rows on a page: 1 to 1000.' })),
      after: Type.Optional(Type.String({ description: "The 'next' value of the page before." })),
    }),
    response: {
      status: 200,
      content: {
        ...jsonResponse(
          Type.Object({
            object: Type.Literal('list'),
            description: Type.String({ description: 'Of the line.', example: `${EXAMPLE_MODEL}: input tokens` }),
            unit: Type.Enum([...units], { description: 'Of the line.' }),
            data: Type.Array(rowSchema),
            next: nullable(Type.String(), "Send it as 'after' to get the next page. null on the last page."),
          }),
        ).content,
        'text/csv': { schema: textSchema, example: 'request_id,started,settled,quantity,amount_aud,…\n' },
      },
    },
    errors: ['not_found', 'invalid_value'],
    async answer({ exchange, caller, parameters: { number, line }, query: { format, limit = DEFAULT_ROWS, after } }) {
      const found = await findLineRows(invoices, number, line, caller.workspace.id)
      if (format === 'csv') {
        return exchange.sendStream(Readable.from(rowsCsv(found)), {
          'Content-Type': 'text/csv; charset=utf-8',
          'Content-Disposition': `attachment; filename="${number}-line-${line}.csv"`,
        })
      }
      const rows = await found.page(rowsAfter(after), limit + 1)
      const shown = rows.slice(0, limit)
      const next = rows.length > limit ? nextRows(shown) : null
      const { description, unit } = found.line
      exchange.sendJson(JSON.stringify({ object: 'list', description, unit, data: shown.map(lineRowView), next }))
    },
  })
}
