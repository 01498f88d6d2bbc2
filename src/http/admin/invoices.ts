import Type from 'typebox'
import type { Accounts } from '../../accounts/accounts.ts'
import { invoiceHtml } from '../../billing/invoice-html.ts'
import type { Invoicing } from '../../billing/invoices.ts'
import { ApiError } from '../../core/errors.ts'
import type { InvoiceDocument } from '../../core/money/invoice-document.ts'
import { parseMonth, type Month } from '../../core/money/sydney-time.ts'
import { invalidParameter } from '../../core/parameter-errors.ts'
import type { Workspace } from '../../ports/accounts.ts'
import type { Exchange } from '../exchange.ts'
import { binarySchema, listSchema, textSchema } from '../common-schema.ts'
import { jsonResponse, type ResponseDescription } from '../route.ts'
import { invoiceSchema } from './invoice-schema.ts'
import { operatorRoute, type OperatorRoute } from './operator-route.ts'

/** Tax invoices and adjustment notes. */

export interface InvoicesParts {
  readonly accounts: Accounts
  readonly invoicing: Invoicing
}

const monthSchema = Type.Object({
  workspace: Type.String({ minLength: 1, description: 'The name or id of a workspace.' }),
  period: Type.String({ description: 'A month in Sydney, such as 2026-11.' }),
})

const creditSchema = Type.Object({
  ...monthSchema.properties,
  reason: Type.String({ minLength: 1, maxLength: 1000 }),
  all: Type.Optional(Type.Boolean({ description: 'true: everything that is left of the invoice.' })),
  requests: Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), {
      minItems: 1,
      maxItems: 10_000,
      description: 'The ids of the requests to credit. Send either this or all.',
    }),
  ),
})

const formats = ['json', 'html', 'pdf'] as const
type Format = (typeof formats)[number]

const formatQuery = Type.Object({
  format: Type.Optional(Type.Enum([...formats], { description: 'json (default), a web page, or a PDF.' })),
})

const documentResponse: ResponseDescription = {
  status: 200,
  content: { 'application/json': invoiceSchema, 'text/html': textSchema, 'application/pdf': binarySchema },
}

export function invoiceRoutes({ accounts, invoicing }: InvoicesParts): readonly OperatorRoute[] {
  const requested = (body: { readonly workspace: string; readonly period: string }): [Workspace, Month] => [
    accounts.workspace(body.workspace),
    monthIn(body.period),
  ]

  return [
    operatorRoute({
      method: 'GET',
      path: '/admin/v1/invoices',
      id: 'listInvoices',
      summary: 'List invoices',
      description: 'All issued invoices and adjustment notes, or those of one workspace.',
      query: Type.Object({
        workspace: Type.Optional(Type.String({ description: 'The name or id of a workspace.' })),
      }),
      response: jsonResponse(listSchema(invoiceSchema)),
      errors: ['not_found'],
      async answer({ exchange, query: { workspace } }) {
        const data = await invoicing.list(workspace === undefined ? undefined : accounts.workspace(workspace))
        exchange.sendJson(JSON.stringify({ object: 'list', data }))
      },
    }),
    operatorRoute({
      method: 'POST',
      path: '/admin/v1/invoices',
      id: 'issueInvoice',
      summary: 'Issue an invoice',
      description: 'Issues the tax invoice of a month that is over in Sydney. It is never changed afterwards.',
      body: monthSchema,
      response: jsonResponse(invoiceSchema, 201),
      errors: ['not_found', 'conflict'],
      async answer({ exchange, body }) {
        exchange.sendJson(JSON.stringify(await invoicing.issue(...requested(body))), 201)
      },
    }),
    operatorRoute({
      method: 'POST',
      path: '/admin/v1/invoices/preview',
      id: 'previewInvoice',
      summary: 'Preview an invoice',
      description: 'What a month has come to so far, or its invoice if it has been issued.',
      query: formatQuery,
      body: monthSchema,
      response: documentResponse,
      errors: ['not_found'],
      async answer({ exchange, query, body }) {
        await sendDocument(exchange, query.format ?? 'json', await invoicing.preview(...requested(body)))
      },
    }),
    operatorRoute({
      method: 'POST',
      path: '/admin/v1/invoices/credit',
      id: 'creditInvoice',
      summary: 'Issue an adjustment note',
      description: 'Credits some or all requests of an issued invoice.',
      body: creditSchema,
      response: jsonResponse(invoiceSchema, 201),
      errors: ['not_found', 'conflict'],
      async answer({ exchange, body }) {
        const [workspace, month] = requested(body)
        const requests = body.requests ?? null
        if ((requests === null) === (body.all !== true)) {
          throw new ApiError('invalid_value', "Send either 'requests' or all: true.", { param: 'requests' })
        }
        exchange.sendJson(JSON.stringify(await invoicing.credit(workspace, month, requests, body.reason)), 201)
      },
    }),
    operatorRoute({
      method: 'GET',
      path: '/admin/v1/invoices/{number}',
      id: 'getInvoice',
      summary: 'One invoice',
      description: 'An issued invoice or adjustment note, by its number.',
      parameters: { number: 'The number of an invoice, such as INV-000001.' },
      query: formatQuery,
      response: documentResponse,
      errors: ['not_found'],
      async answer({ exchange, parameters, query }) {
        await sendDocument(exchange, query.format ?? 'json', await invoicing.byNumber(parameters.number))
      },
    }),
  ]
}

async function sendDocument(exchange: Exchange, format: Format, document: InvoiceDocument): Promise<void> {
  switch (format) {
    case 'json':
      return exchange.sendJson(JSON.stringify(document))
    case 'html':
      return exchange.send(200, 'text/html; charset=utf-8', invoiceHtml(document))
    case 'pdf': {
      // Loaded on first use: it takes longer to load than everything else here.
      const { invoicePdf } = await import('../../billing/invoice-pdf.ts')
      return exchange.send(200, 'application/pdf', await invoicePdf(document), {
        'Content-Disposition': `inline; filename="${document.number ?? 'preview'}.pdf"`,
      })
    }
  }
}

function monthIn(text: string): Month {
  const month = parseMonth(text)
  if (!month) throw invalidParameter('invalid_value', 'period', 'a month such as 2026-11')
  return month
}
