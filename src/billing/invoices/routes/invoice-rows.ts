import { Readable } from 'node:stream'
import { Type } from 'typebox'
import { findLineRows, nextRows, rowsAfter, type LineRowsStore } from '../rows/line-rows.ts'
import type { RowLink, RowLinks } from '../rows/row-links.ts'
import { PAGE_POLICY, refusalPage, rowPage, rowsCsv } from '../rows/row-page.ts'
import { ApiError } from '../../../shared/errors.ts'
import { textSchema } from '../../../server/common-schema.ts'
import type { Exchange } from '../../../server/exchange.ts'
import { openRoute, type Operation, type OpenRoute } from '../../../server/route.ts'
import { BASE } from '../../../server/key-route.ts'

export interface InvoiceRowsParts {
  readonly invoices: LineRowsStore
  readonly rowLinks: RowLinks
}

const PAGE_ROWS = 100

/** The link is a credential, so it must not be passed on or cached, and the page must not run anything. */
const HEADERS = {
  'Cache-Control': 'private, no-store',
  'Content-Security-Policy': PAGE_POLICY,
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Robots-Tag': 'noindex',
}

const querySchema = Type.Object({
  until: Type.String({ description: 'The last day on which the link works.', example: '2027-02-13' }),
  signature: Type.String({ description: 'As the link has it.', example: '5f0c7d9e2b14a6f8d3e5c70a' }),
  after: Type.Optional(Type.String({ description: 'Where the next page begins, as its link says.' })),
  format: Type.Optional(Type.Enum(['html', 'csv'], { description: 'A web page (default), or all rows as CSV.' })),
})

const csvExample = `request_id,started,settled,quantity,amount_aud,estimated,outcome,corrects,reason
0mgx1vk2v5f0c7d9e2b14a6f8d3e5c70,2026-11-15T22:04:05.000Z,2026-11-15T22:04:05.640Z,27,0.0000027,false,completed,,
`

const operation: Operation = {
  id: 'invoiceRows',
  summary: 'Rows of an invoice line',
  description:
    'The rows behind one line of an invoice, with the part that each adds to the line. Every line of an invoice links here with a signature that expires, so no key is needed. Requests count against the limit for callers without a key.',
  parameters: {
    number: { description: 'The number of an invoice.', example: 'INV-000001' },
    line: { description: 'Which line, from 1.', example: '1' },
  },
  query: querySchema,
  response: {
    status: 200,
    content: {
      'text/html': { schema: textSchema, example: '<!doctype html><title>INV-000001, line 1</title>…' },
      'text/csv': { schema: textSchema, example: csvExample },
    },
  },
  errors: ['not_found', 'invalid_value', 'rate_limit_exceeded'],
}

/** Shows the rows of an invoice line to anyone with the invoice. The signed link is the permission. */
export function invoiceRowsRoute({ invoices, rowLinks }: InvoiceRowsParts): OpenRoute {
  return {
    ...openRoute(
      `${BASE}/invoices/{number}/rows/{line}`,
      async (exchange, { number, line }) => {
        // Parsed leniently: a person whose mail program truncated the link gets an explanatory page, not an API error.
        const query = new URLSearchParams(exchange.query)
        const [until, signature] = [query.get('until') ?? '', query.get('signature') ?? '']
        const after = query.get('after') ?? undefined
        const link = { number, line, until, signature }
        try {
          await rowLinks.requireValid(link)
          const found = await findLineRows(invoices, number, line)
          if (query.get('format') === 'csv') {
            return await exchange.sendStream(Readable.from(rowsCsv(found)), {
              ...HEADERS,
              'Content-Type': 'text/csv; charset=utf-8',
              'Content-Disposition': `attachment; filename="${number}-line-${line}.csv"`,
            })
          }
          const rows = await found.page(rowsAfter(after), PAGE_ROWS + 1)
          const shown = rows.slice(0, PAGE_ROWS)
          const body = rowPage(found, shown, {
            csv: hrefOf(link, { format: 'csv' }),
            first: after === undefined ? undefined : hrefOf(link, {}),
            next: rows.length > PAGE_ROWS ? hrefOf(link, { after: nextRows(shown) }) : undefined,
            until,
          })
          sendPage(exchange, 200, body)
        } catch (error) {
          // A person in a browser gets a page for errors too.
          const isBrowser = exchange.request.headers.accept?.includes('text/html') ?? false
          if (!(error instanceof ApiError) || error.status !== 404 || !isBrowser) throw error
          sendPage(exchange, error.status, refusalPage(error.message))
        }
      },
      operation,
    ),
    isCounted: true,
  }
}

function sendPage(exchange: Exchange, status: number, body: string): void {
  exchange.send(status, 'text/html; charset=utf-8', body, HEADERS)
}

/** Only the query, so that it works behind a proxy with a path of its own. */
function hrefOf({ until, signature }: RowLink, more: Readonly<Record<string, string>>): string {
  return `?${new URLSearchParams({ until, signature, ...more }).toString()}`
}
