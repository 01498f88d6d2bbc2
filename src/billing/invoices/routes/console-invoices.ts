import type { Invoicing } from '../invoices.ts'
import { ApiError } from '../../../shared/errors.ts'
import { pageSchema } from '../../../server/common-schema.ts'
import { sessionRoute, type SessionRoute } from '../../../server/console/session-route.ts'
import { invoicePageQuery, invoiceSchema, numberParameter } from './invoice-schema.ts'
import { jsonResponse } from '../../../server/route.ts'
import { invoiceFormatQuery, invoiceResponse, sendInvoice, type SendInvoiceParts } from './send-invoice.ts'

/** The invoices of a workspace, for its members. */

export interface ConsoleInvoicesParts extends SendInvoiceParts {
  readonly invoicing: Invoicing
}

export function consoleInvoiceRoutes(parts: ConsoleInvoicesParts): readonly SessionRoute[] {
  return [
    sessionRoute({
      method: 'GET',
      path: '/invoices',
      id: 'invoices',
      summary: 'List invoices',
      description: 'The invoices and adjustment notes of the workspace, the newest first, in pages.',
      roles: ['workspace_admin'],
      query: invoicePageQuery,
      response: jsonResponse(pageSchema(invoiceSchema)),
      errors: [],
      async answer({ exchange, query: { before, state, limit = 50 }, session: { caller } }) {
        const selection = { workspaceId: caller.workspace.id, before, state, limit }
        const { documents: data, next } = await parts.invoicing.page(selection)
        exchange.sendJson(JSON.stringify({ object: 'list', data, next }))
      },
    }),
    sessionRoute({
      method: 'GET',
      path: '/invoices/{number}',
      id: 'invoice',
      summary: 'One invoice',
      description: 'An invoice or adjustment note of the workspace, by its number.',
      roles: ['workspace_admin'],
      parameters: { number: numberParameter },
      query: invoiceFormatQuery,
      response: invoiceResponse,
      errors: ['not_found'],
      async answer({ exchange, parameters: { number }, query, session: { caller } }) {
        const document = await parts.invoicing.byNumber(number)
        // Another workspace's number is treated like one that was never issued.
        if (document.workspace !== caller.workspace.name) {
          throw new ApiError('not_found', `There is no invoice "${number.slice(0, 100)}".`, { param: 'number' })
        }
        await sendInvoice(exchange, query.format ?? 'json', document, parts)
      },
    }),
  ]
}
