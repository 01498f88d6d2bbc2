import { reconcile as prove } from '../billing/reconcile.ts'
import { reconciliationView } from '../billing/reconciliation-view.ts'
import { formatAud } from '../core/money/money.ts'
import { parseFlags, print, ProblemsFound, table, withBooks, type Command } from './command.ts'

export const reconcile: Command = {
  summary: 'prove that rows, sums and invoices agree',
  help: `weir reconcile

Reads every row of the ledger and proves: each costs what its usage comes to at its price version, and that price was in
force; the sums by hour and day are those of the rows; each invoice's lines are the sums of its rows and each row stands in
one; no number is missing. Says which rows do not fit, and ends with 1 then. A running service goes on meanwhile.`,
  async run(args) {
    const flags = parseFlags(args)
    await withBooks(flags, { changes: false }, async ({ store }) => {
      const result = await prove(store)
      const { workspaces, rows, invoices, amount, problems } = result
      print(flags, reconciliationView(result), () =>
        [
          `${rows} rows of ${workspaces} workspaces, A$${formatAud(amount)}; ${invoices} invoices and notes`,
          problems.length === 0 ? 'everything fits' : table(problems, ['check', 'workspace', 'subject', 'message']),
        ].join('\n'),
      )
      if (problems.length > 0) throw new ProblemsFound()
    })
  },
}
