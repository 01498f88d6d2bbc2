import { reconcileLedger, type Reconciliation } from '../reconcile.ts'
import { reconciliationView } from '../reconciliation-view.ts'
import { reportReconciliation } from '../../../operate/running-service.ts'
import { parseFlags, ProblemsFound, withStore, type Command } from '../../../cli/command.ts'
import { audText } from '../../../cli/terminal/amounts.ts'
import { counted } from '../../../shared/counts.ts'
import type { View } from '../../../cli/terminal/view.ts'

export const reconcile: Command = {
  summary: 'check that usage, sums and invoices agree',
  help: `weir reconcile

Reads every row of the ledger and checks that
- its amount follows from its usage and its price version;
- that price version was in effect for its model and workspace;
- the stored sums by hour and day match the rows;
- the lines and totals of every invoice match its rows;
- no invoice number is missing;
- the database has refused no row.

Lists every mismatch and exits with status 1 if there is one. It is safe to run
beside a running service, whose metrics then show the result.`,
  async run(args) {
    const flags = parseFlags(args)
    await withStore(flags, { changes: false }, async ({ config, store }) => {
      const result = await reconcileLedger(store)
      await reportReconciliation(config.dataDir, result.problems.length)
      flags.print(reconciliationView(result), (view) => reconciliationText(result, view))
      if (result.problems.length > 0) throw new ProblemsFound('problems found; see above')
    })
  },
}

function reconciliationText(result: Reconciliation, { paint }: View): string {
  const { workspaces, rows, invoices, amount, problems } = result
  const documents = counted(invoices, 'invoice or adjustment note', 'invoices and adjustment notes')
  const summary = `${counted(rows, 'row')} in ${counted(workspaces, 'workspace')}, ${audText(amount)}; ${documents}`
  const found = problems.flatMap(({ check, workspace, subject, message }) => [
    `${paint('red', '✖')} ${check}: ${[workspace, subject].filter(Boolean).join(', ')}`,
    `    ${message}`,
  ])
  return [summary, ...(problems.length === 0 ? [`${paint('green', '✔')} Everything agrees.`] : found)].join('\n')
}
