import { Type } from 'typebox'
import { reconcileLedger } from '../reconcile.ts'
import { reconciliationView } from '../reconciliation-view.ts'
import type { Clock } from '../../../shared/clock.ts'
import type { Store } from '../../../store/store.ts'
import { nullable } from '../../../server/common-schema.ts'
import { jsonResponse } from '../../../server/route.ts'
import { operatorRoute, type OperatorRoute } from '../../../server/operator-route.ts'

const reconciliationSchema = Type.Object({
  object: Type.Literal('reconciliation'),
  fits: Type.Boolean({ description: 'True if everything adds up.', example: true }),
  workspaces: Type.Integer({ example: 2 }),
  rows: Type.Integer({ example: 1043 }),
  invoices: Type.Integer({ example: 3 }),
  amount_pico_aud: Type.String({
    description: 'The sum of all rows, in units of 10⁻¹² AUD.',
    example: '12500000000000',
  }),
  problems: Type.Array(
    Type.Object({
      check: Type.Enum([
        'amount',
        'price_version',
        'tier',
        'correction',
        'credit',
        'sums',
        'invoice',
        'number',
        'refused',
      ]),
      workspace: nullable(Type.String()),
      subject: Type.String({ description: 'The row or the invoice that is wrong.' }),
      message: Type.String(),
    }),
    { example: [] },
  ),
})

export interface ReconciliationParts {
  readonly store: Store
  readonly clock: Clock
  readonly telemetry: { reconciled(problems: number, at: number): void }
}

export function reconciliationRoute({ store, clock, telemetry }: ReconciliationParts): OperatorRoute {
  return operatorRoute({
    method: 'GET',
    path: '/admin/v1/reconcile',
    id: 'reconcile',
    roles: ['finance', 'viewer'],
    summary: 'Reconcile the ledger',
    description:
      'Recomputes every amount, sum and invoice from the rows of the ledger, and lists what does not fit, including rows that the database refused. The metrics show how many.',
    response: jsonResponse(reconciliationSchema),
    errors: [],
    async answer({ exchange }) {
      const result = await reconcileLedger(store)
      telemetry.reconciled(result.problems.length, clock.now())
      exchange.sendJson(JSON.stringify(reconciliationView(result)))
    },
  })
}
