import Type from 'typebox'
import type { Accounts } from '../../accounts/accounts.ts'
import { invoiceHtml } from '../../billing/invoice-html.ts'
import type { Invoicing } from '../../billing/invoices.ts'
import { reconcile } from '../../billing/reconcile.ts'
import { reconciliationView } from '../../billing/reconciliation-view.ts'
import type { InvoiceDocument } from '../../core/money/invoice-document.ts'
import { parseMonth, type Month } from '../../core/money/sydney-time.ts'
import type { Store } from '../../ports/store.ts'
import type { AdminRoute } from './admin-api.ts'
import type { Exchange } from '../exchange.ts'
import { invalidParameter, requireValid } from '../../core/parameter-errors.ts'
import { readJsonObject } from '../body.ts'

/** Invoices, adjustment notes, corrections and the proof of the books, for the operator. */
export interface InvoiceParts {
  readonly accounts: Accounts
  readonly invoicing: Invoicing
  readonly store: Store
}

const MAX_BODY_BYTES = 1024 * 1024

const monthSchema = Type.Object({ workspace: Type.String({ minLength: 1 }), period: Type.String() })
const reason = Type.String({ minLength: 1, maxLength: 1000 })
const creditSchema = Type.Object({
  ...monthSchema.properties,
  reason,
  all: Type.Optional(Type.Boolean()),
  requests: Type.Optional(Type.Array(Type.String({ minLength: 1 }), { minItems: 1, maxItems: 10_000 })),
})
const correctionSchema = Type.Object({ reason })

export function invoiceRoutes({ accounts, invoicing, store }: InvoiceParts): readonly AdminRoute[] {
  const route = (method: string, path: string, handle: AdminRoute['handle']): AdminRoute => ({
    method,
    path: path.split('/'),
    handle,
  })
  async function asked(exchange: Exchange, schema: Schema) {
    const body = await bodyOf<Asked>(exchange, schema)
    return { body, workspace: accounts.workspace(body.workspace), month: monthIn(body.period) }
  }

  return [
    route('GET', '/admin/v1/invoices', async (exchange) => {
      const name = new URLSearchParams(exchange.query).get('workspace')
      const data = await invoicing.list(name === null ? undefined : accounts.workspace(name))
      exchange.sendJson(JSON.stringify({ object: 'list', data }))
    }),
    route('POST', '/admin/v1/invoices/preview', async (exchange) => {
      const { workspace, month } = await asked(exchange, monthSchema)
      await send(exchange, await invoicing.preview(workspace, month))
    }),
    route('POST', '/admin/v1/invoices', async (exchange) => {
      const { workspace, month } = await asked(exchange, monthSchema)
      exchange.send(201, 'application/json', JSON.stringify(await invoicing.issue(workspace, month)))
    }),
    route('POST', '/admin/v1/invoices/credit', async (exchange) => {
      const { body, workspace, month } = await asked(exchange, creditSchema)
      if ((body.requests === undefined) === (body.all !== true))
        throw invalidParameter('invalid_value', 'requests', 'given, or else all: true')
      const note = await invoicing.credit(workspace, month, body.requests ?? null, body.reason ?? '')
      exchange.send(201, 'application/json', JSON.stringify(note))
    }),
    route('GET', '/admin/v1/invoices/*', async (exchange, [number = '']) =>
      send(exchange, await invoicing.byNumber(number)),
    ),
    route('POST', '/admin/v1/usage/*/correct', async (exchange, [id = '']) => {
      const body = await bodyOf<{ reason: string }>(exchange, correctionSchema)
      await invoicing.correct(id, body.reason)
      exchange.send(201, 'application/json', JSON.stringify({ corrects: id }))
    }),
    route('GET', '/admin/v1/reconcile', async (exchange) =>
      exchange.sendJson(JSON.stringify(reconciliationView(await reconcile(store)))),
    ),
  ]
}

interface Asked {
  readonly workspace: string
  readonly period: string
  readonly reason?: string
  readonly all?: boolean
  readonly requests?: readonly string[]
}

type Schema = Parameters<typeof requireValid>[0]

async function bodyOf<Body>(exchange: Exchange, schema: Schema): Promise<Body> {
  const { value } = await readJsonObject(exchange, MAX_BODY_BYTES)
  requireValid(schema, value)
  return value as Body
}

/** As JSON, or with ?format= as a page or a PDF. */
async function send(exchange: Exchange, found: InvoiceDocument): Promise<void> {
  switch (new URLSearchParams(exchange.query).get('format') ?? 'json') {
    case 'json':
      return exchange.sendJson(JSON.stringify(found))
    case 'html':
      return exchange.send(200, 'text/html; charset=utf-8', invoiceHtml(found))
    case 'pdf': {
      const { invoicePdf } = await import('../../billing/invoice-pdf.ts')
      return exchange.send(200, 'application/pdf', await invoicePdf(found), {
        'Content-Disposition': `inline; filename="${found.number ?? 'preview'}.pdf"`,
      })
    }
    default:
      throw invalidParameter('invalid_value', 'format', 'one of json, html, pdf')
  }
}

function monthIn(text: string): Month {
  const month = parseMonth(text)
  if (!month) throw invalidParameter('invalid_value', 'period', 'a month such as 2026-11')
  return month
}
