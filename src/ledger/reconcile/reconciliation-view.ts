import type { Reconciliation } from './reconcile.ts'

export function reconciliationView(it: Reconciliation): object {
  return {
    object: 'reconciliation',
    fits: it.problems.length === 0,
    workspaces: it.workspaces,
    rows: it.rows,
    invoices: it.invoices,
    amount_pico_aud: it.amount.toString(),
    problems: it.problems,
  }
}
