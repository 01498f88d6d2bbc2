import { Type } from 'typebox'
import type { Accounts } from '../../../workspaces/accounts.ts'
import { previewIdOf } from '../invoice-rules.ts'
import type { Invoicing } from '../invoices.ts'
import { monthSummary } from '../month-summary.ts'
import { ApiError } from '../../../shared/errors.ts'
import type { InvoiceDocument } from '../invoice-document.ts'
import type { Month } from '../../../shared/money/sydney-time.ts'
import type { Workspace } from '../../../workspaces/workspace.ts'
import type { Exchange } from '../../../server/exchange.ts'
import { nullable, pageSchema, workspaceName } from '../../../server/common-schema.ts'
import { jsonResponse } from '../../../server/route.ts'
import {
  invoiceFormatQuery,
  invoiceResponse,
  sendInvoice,
  type InvoiceFormat,
  type SendInvoiceParts,
} from './send-invoice.ts'
import { draftRoutes } from './drafts.ts'
import { monthIn, periodSchema } from './period.ts'
import { paymentRoutes } from './payments.ts'
import {
  adjustmentExample,
  invoiceExample,
  invoicePageQuery,
  invoiceSchema,
  operatorInvoiceSchema,
  numberParameter,
  previewIdExample,
} from './invoice-schema.ts'
import { operatorRoute, type OperatorRoute } from '../../../server/operator-route.ts'

/** Tax invoices and adjustment notes. */

export interface InvoicesParts extends SendInvoiceParts {
  readonly accounts: Accounts
  readonly invoicing: Invoicing
}

const monthSchema = Type.Object({ workspace: workspaceName, period: periodSchema })

const monthExample = { workspace: 'acme', period: '2026-11' }

const issueSchema = Type.Object({
  ...monthSchema.properties,
  preview_id: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 100,
      description: 'The preview_id of a preview: what it shows is issued, or nothing if it has changed since (409).',
    }),
  ),
})

const previewSchema = Type.Object({
  ...invoiceSchema.properties,
  preview_id: nullable(Type.String(), 'Send it to issue exactly this. null: the invoice has been issued.'),
})

const creditSchema = Type.Object({
  ...monthSchema.properties,
  reason: Type.String({ minLength: 1, maxLength: 1000 }),
  all: Type.Optional(Type.Boolean({ description: 'true: everything that is left of the invoice.' })),
  requests: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 200 }), {
      minItems: 1,
      maxItems: 10_000,
      description: 'The ids of the requests to credit. Send this, all or amount.',
    }),
  ),
  amount: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 40,
      description: 'AUD excluding GST, such as "25.00": credits a free amount. Send this, all or requests.',
    }),
  ),
})

export function invoiceRoutes({
  accounts,
  invoicing,
  rowLinks,
  invoiceFonts,
}: InvoicesParts): readonly OperatorRoute[] {
  const requested = (body: { readonly workspace: string; readonly period: string }): [Workspace, Month] => [
    accounts.workspace(body.workspace),
    monthIn(body.period),
  ]

  const documentsOf = ({ workspace, period }: { readonly workspace: string; readonly period: string }) =>
    monthSummary(invoicing, accounts.workspace(workspace), period)

  const emailed = async (document: InvoiceDocument) => ({
    ...(await rowLinks.linked(await invoicing.balanced(document))),
    email: await invoicing.emails.of(document),
  })

  async function sendIssued(exchange: Exchange, document: InvoiceDocument): Promise<void> {
    exchange.sendJson(JSON.stringify(await emailed(document)), 201)
  }

  const sendDocument = (exchange: Exchange, format: InvoiceFormat, document: InvoiceDocument): Promise<void> =>
    sendInvoice(exchange, format, document, { invoicing, rowLinks, invoiceFonts })

  return [
    operatorRoute({
      method: 'GET',
      path: '/admin/v1/invoices',
      id: 'listInvoices',
      roles: ['finance', 'viewer'],
      summary: 'List invoices',
      description: 'Issued invoices and adjustment notes, of all workspaces or one, the newest first, in pages.',
      query: Type.Object({
        workspace: Type.Optional(Type.String({ description: 'The name or id of a workspace.' })),
        ...invoicePageQuery.properties,
      }),
      response: jsonResponse(pageSchema(operatorInvoiceSchema)),
      errors: ['not_found'],
      async answer({ exchange, query: { workspace, before, state, limit = 50 } }) {
        const workspaceId = workspace === undefined ? undefined : accounts.workspace(workspace).id
        const { documents, next } = await invoicing.page({ workspaceId, before, state, limit })
        const linked = await Promise.all(documents.map((document) => rowLinks.linked(document)))
        const data = await invoicing.emails.with(linked)
        exchange.sendJson(JSON.stringify({ object: 'list', data, next }))
      },
    }),
    operatorRoute({
      method: 'POST',
      path: '/admin/v1/invoices',
      id: 'issueInvoice',
      roles: ['finance'],
      summary: 'Issue an invoice',
      description: 'Issues the tax invoice of a month that is over in Sydney. It is never changed afterwards.',
      body: issueSchema,
      example: { ...monthExample, preview_id: previewIdExample },
      response: jsonResponse(operatorInvoiceSchema, undefined, 201),
      errors: ['not_found', 'conflict'],
      state: ({ body }) => documentsOf(body),
      async answer({ exchange, body }) {
        await sendIssued(exchange, await invoicing.issue(...requested(body), body.preview_id))
      },
    }),
    operatorRoute({
      method: 'POST',
      path: '/admin/v1/invoices/preview',
      id: 'previewInvoice',
      roles: ['finance', 'viewer'],
      summary: 'Preview an invoice',
      description: 'What a month has come to so far, or its invoice if it has been issued.',
      query: invoiceFormatQuery,
      body: monthSchema,
      example: monthExample,
      response: {
        ...invoiceResponse,
        content: {
          ...invoiceResponse.content,
          'application/json': {
            schema: previewSchema,
            example: { ...invoiceExample, number: null, issued: null, preview_id: previewIdExample },
          },
        },
      },
      changesNothing: true,
      errors: ['not_found'],
      async answer({ exchange, query: { format = 'json' }, body }) {
        const document = await invoicing.preview(...requested(body))
        if (format !== 'json') return sendDocument(exchange, format, document)
        const preview_id = document.number === null ? previewIdOf(document) : null
        exchange.sendJson(
          JSON.stringify({ ...(await rowLinks.linked(await invoicing.balanced(document))), preview_id }),
        )
      },
    }),
    operatorRoute({
      method: 'POST',
      path: '/admin/v1/invoices/credit',
      id: 'creditInvoice',
      roles: ['finance'],
      summary: 'Issue an adjustment note',
      description:
        'Credits some or all requests of an issued invoice, or a free amount. A free amount on a month that is not invoiced yet becomes a line of its invoice; the answer is then the preview of that month.',
      body: creditSchema,
      example: { ...monthExample, reason: 'Slow answers on 3 November', amount: '25.00' },
      response: jsonResponse(operatorInvoiceSchema, adjustmentExample, 201),
      errors: ['not_found', 'conflict'],
      state: ({ body }) => documentsOf(body),
      async answer({ exchange, body }) {
        const [workspace, month] = requested(body)
        const { requests, all, amount, reason } = body
        if ([requests !== undefined, all === true, amount !== undefined].filter(Boolean).length !== 1) {
          throw new ApiError('invalid_value', "Send either 'requests', all: true or 'amount'.", { param: 'requests' })
        }
        const credited =
          amount === undefined
            ? await invoicing.credit(workspace, month, requests ?? null, reason)
            : await invoicing.creditAmount(workspace, month, amount, reason)
        await sendIssued(exchange, credited)
      },
    }),
    operatorRoute({
      method: 'POST',
      path: '/admin/v1/invoices/revoke-links',
      id: 'revokeInvoiceLinks',
      summary: 'Revoke the links on invoices',
      description:
        'Makes every link to rows useless that any invoice has carried so far. A copy that is made afterwards has new links.',
      response: jsonResponse(Type.Object({ revoked: Type.Literal(true) })),
      errors: [],
      async answer({ exchange }) {
        await rowLinks.revoke()
        exchange.sendJson('{"revoked":true}')
      },
    }),
    operatorRoute({
      method: 'GET',
      path: '/admin/v1/invoices/{number}',
      id: 'getInvoice',
      roles: ['finance', 'viewer'],
      summary: 'One invoice',
      description: 'An issued invoice or adjustment note, by its number.',
      parameters: { number: numberParameter },
      query: invoiceFormatQuery,
      response: {
        ...invoiceResponse,
        content: { ...invoiceResponse.content, ...jsonResponse(operatorInvoiceSchema).content },
      },
      errors: ['not_found'],
      async answer({ exchange, parameters, query: { format = 'json' } }) {
        const document = await invoicing.byNumber(parameters.number)
        if (format !== 'json') return sendDocument(exchange, format, document)
        exchange.sendJson(JSON.stringify(await emailed(document)))
      },
    }),
    operatorRoute({
      method: 'POST',
      path: '/admin/v1/invoices/{number}/email',
      id: 'sendInvoice',
      roles: ['finance'],
      summary: 'Send an invoice by e-mail',
      description:
        "Queues an e-mail with the document to the buyer's address, also if it was sent before. An issued document is queued without this request if the buyer has an address and SMTP is configured.",
      parameters: { number: numberParameter },
      response: jsonResponse(operatorInvoiceSchema),
      errors: ['not_found', 'conflict'],
      state: async ({ parameters: { number } }) =>
        (await invoicing.emails.of(await invoicing.byNumber(number))) ?? undefined,
      async answer({ exchange, parameters: { number } }) {
        const document = await invoicing.byNumber(number)
        await invoicing.emails.send(document, accounts.workspace(document.workspace).buyer.email)
        exchange.sendJson(JSON.stringify(await emailed(document)))
      },
    }),
    ...draftRoutes({ accounts, invoicing }),
    ...paymentRoutes({ invoicing, emailed }),
  ]
}
