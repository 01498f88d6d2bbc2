import { Type } from 'typebox'
import type { Invoicing } from '../invoices.ts'
import type { InvoiceDocument } from '../invoice-document.ts'
import type { Exchange } from '../../../server/exchange.ts'
import { operatorRoute, type OperatorRoute } from '../../../server/operator-route.ts'
import { jsonResponse } from '../../../server/route.ts'
import { numberParameter, operatorInvoiceSchema } from './invoice-schema.ts'

/** What was paid on issued invoices. */

interface PaymentsParts {
  readonly invoicing: Invoicing
  /** As the operator sees it. */
  emailed(document: InvoiceDocument): Promise<object>
}

export function paymentRoutes({ invoicing, emailed }: PaymentsParts): readonly OperatorRoute[] {
  const balanceOf = async (number: string) =>
    (await invoicing.balanced(await invoicing.byNumber(number))).balance ?? undefined
  const send = async (exchange: Exchange, number: string, status: number) =>
    exchange.sendJson(JSON.stringify(await emailed(await invoicing.byNumber(number))), status)

  return [
    operatorRoute({
      method: 'POST',
      path: '/admin/v1/invoices/{number}/payments',
      id: 'recordPayment',
      roles: ['finance'],
      summary: 'Record a payment',
      description:
        'Records that an invoice was paid, in full or in part. If the buyer is owed money after a credit, it records what was paid back. The amount due is taken to zero, and never past it.',
      parameters: { number: numberParameter },
      body: Type.Object({
        paid_on: Type.String({ maxLength: 10, description: 'The day in Sydney, such as 2026-12-03. Not after today.' }),
        reference: Type.String({
          minLength: 1,
          maxLength: 200,
          description: 'Finds the payment again, such as the number on the bank statement.',
        }),
        amount: Type.Optional(
          Type.String({
            minLength: 1,
            maxLength: 40,
            description: 'AUD, such as "110.00". Without it: all that is due.',
          }),
        ),
      }),
      example: { paid_on: '2026-12-03', reference: 'NAB 20261203-17' },
      response: jsonResponse(operatorInvoiceSchema, undefined, 201),
      errors: ['not_found', 'conflict'],
      state: ({ parameters: { number } }) => balanceOf(number),
      async answer({ exchange, parameters: { number }, body: { paid_on: paidOn, reference, amount } }) {
        await invoicing.payments.record(number, { paidOn, reference, amount })
        await send(exchange, number, 201)
      },
    }),
    operatorRoute({
      method: 'DELETE',
      path: '/admin/v1/invoices/{number}/payments/{payment}',
      id: 'removePayment',
      roles: ['finance'],
      summary: 'Remove a payment',
      description: 'Removes a payment that was recorded by mistake. The audit log keeps it.',
      parameters: {
        number: numberParameter,
        payment: { description: 'The id of the payment: 1 is the first of the invoice.', example: '1' },
      },
      response: jsonResponse(operatorInvoiceSchema),
      errors: ['not_found'],
      state: ({ parameters: { number } }) => balanceOf(number),
      async answer({ exchange, parameters: { number, payment } }) {
        await invoicing.payments.remove(number, /^[1-9]\d{0,8}$/.test(payment) ? Number(payment) : 0)
        await send(exchange, number, 200)
      },
    }),
  ]
}
