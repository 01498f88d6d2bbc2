import { reconcileBooks } from '../billing/reconcile.ts'
import { reconciliationView } from '../billing/reconciliation-view.ts'
import { formatAud } from '../core/money/money.ts'
import { parseFlags, print, ProblemsFound, table, withBooks, type Command } from './command.ts'

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
beside a running service.`,
  async run(args) {
    const flags = parseFlags(args)
    await withBooks(flags, { changes: false }, async ({ store }) => {
      const result = await reconcileBooks(store)
      const { workspaces, rows, invoices, amount, problems } = result
      print(flags, reconciliationView(result), () =>
        [
          `${rows} rows in ${workspaces} workspaces, A$${formatAud(amount)}; ${invoices} invoices and adjustment notes`,
          problems.length === 0 ? 'Everything agrees.' : table(problems, ['check', 'workspace', 'subject', 'message']),
        ].join('\n'),
      )
      if (problems.length > 0) throw new ProblemsFound('problems found; see above')
    })
  },
}
