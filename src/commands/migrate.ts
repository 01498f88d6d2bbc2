import { reconcileBooks, type Reconciliation } from '../billing/reconcile.ts'
import { databaseFrom, isDumbTerminal } from '../config.ts'
import { withoutPassword } from '../core/address-without-password.ts'
import { settleLeftJournal } from '../settled-books.ts'
import { openMove } from '../store/move.ts'
import { systemClock } from '../system-clock.ts'
import { CommandFailed, configOf, parseFlags, print, text, UsageError, type Command } from './command.ts'
import { counted } from './terminal/amounts.ts'
import { openScreen } from './terminal/screen.ts'

export const migrate: Command = {
  summary: 'move the books from SQLite to PostgreSQL',
  help: `weir migrate [--to postgres://USER@HOST:PORT/DATABASE]

Moves the ledger, invoices, workspaces, keys, prices and the audit log from the
data directory to an empty PostgreSQL database. Stop the service first. If it is
cut off, run it again: it goes on where it was.

At the end it compares the number of rows of every table, and reconciles both
books. Then weir.db becomes weir.db.moved, and the service starts on PostgreSQL
once database or WEIR_DATABASE_URL says so.

  --to URL   the database (default: the one of the configuration). A password
             is better kept in WEIR_DATABASE_URL`,
  async run(args) {
    const flags = parseFlags(args, { to: 'string' })
    const config = configOf(flags)
    const url = databaseFrom(text(flags, 'to'), '--to') ?? config.databaseUrl
    if (url === undefined) throw new UsageError('give the database to move to: weir migrate --to postgres://…')
    const { dataDir } = config
    const showsProgress = process.stderr.isTTY && flags.values['json'] !== true
    const screen = showsProgress ? openScreen(process.stderr, { hasBlock: !isDumbTerminal() }) : undefined
    const show = (line: string): void => screen?.setBlock([line])
    const move = await openMove(dataDir, url)
    try {
      await settleLeftJournal(move.from, dataDir)
      const rows = await move.copy((done, total) => show(`copying ${Math.floor((100 * done) / Math.max(1, total))} %`))
      show('reconciling …')
      const [before, after] = [await reconcileBooks(move.from), await reconcileBooks(move.to)]
      requireSame(before, after)
      await move.finish(systemClock.now())
      screen?.close()
      const to = withoutPassword(url)
      const found = { data_dir: dataDir, database: to, rows, problems: after.problems.length }
      print(flags, found, () =>
        [
          `${counted(rows['ledger'] ?? 0, 'ledger row')} and everything else of ${dataDir} is in ${to}, and agrees.`,
          ...(after.problems.length > 0 ? ['weir reconcile found problems before and after: run it to see them.'] : []),
          `Set database to this address in weir.yaml, or WEIR_DATABASE_URL, and start the service.`,
        ].join('\n'),
      )
    } finally {
      screen?.close()
      await move.close()
    }
  },
}

/** Both say the same of every workspace, invoice and amount, and find the same problems, if any. */
function requireSame(before: Reconciliation, after: Reconciliation): void {
  const said = (found: Reconciliation): string =>
    JSON.stringify(found, (_name, value: unknown) => (typeof value === 'bigint' ? value.toString() : value))
  if (said(before) === said(after)) return
  throw new CommandFailed('the books in PostgreSQL do not agree with those in the data directory, which stays in use')
}
