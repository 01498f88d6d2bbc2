import { reconcileLedger, type Reconciliation } from '../../ledger/reconcile/reconcile.ts'
import { isDumbTerminal } from '../../config.ts'
import { databaseFrom } from '../../config/environment-values.ts'
import { withoutPassword } from '../../shared/address-without-password.ts'
import { settleOrphanedJournal } from '../../cli/settled-store.ts'
import { openMove } from '../move.ts'
import { systemClock } from '../../shared/system-clock.ts'
import { CommandFailed, configOf, parseFlags, UsageError, type Command } from '../../cli/command.ts'
import { counted } from '../../shared/counts.ts'
import { openScreen } from '../../cli/terminal/screen.ts'

export const migrate: Command = {
  summary: 'move the database from SQLite to PostgreSQL',
  help: `weir migrate [--to postgres://USER@HOST:PORT/DATABASE]

Moves the ledger, invoices, workspaces, keys, prices and the audit log from the
data directory to an empty PostgreSQL database. Stop the service first. If the
command is interrupted, run it again: it continues where it stopped.

At the end it compares the number of rows of every table, and reconciles both
databases. Then weir.db becomes weir.db.moved. Set database or WEIR_DATABASE_URL
to the new address before you start the service.

  --to URL   the database (default: the configured one). Prefer to keep a
             password in WEIR_DATABASE_URL`,
  async run(args) {
    const flags = parseFlags(args, { to: 'string' })
    const config = configOf(flags)
    const url = databaseFrom(flags.text('to'), '--to') ?? config.databaseUrl
    if (url === undefined) throw new UsageError('give the database to move to: weir migrate --to postgres://…')
    const { dataDir } = config
    const showsProgress = process.stderr.isTTY && flags.values['json'] !== true
    const { rows, problems } = await moved(dataDir, url, showsProgress)
    const to = withoutPassword(url)
    flags.print({ data_dir: dataDir, database: to, rows, problems }, () =>
      [
        `${counted(rows['ledger'] ?? 0, 'ledger row')} and everything else in ${dataDir} were copied to ${to}, and both agree.`,
        ...(problems > 0 ? ['weir reconcile found problems before and after: run it to see them.'] : []),
        `Set database to this address in weir.yaml, or WEIR_DATABASE_URL, and start the service.`,
      ].join('\n'),
    )
  },
}

/** Returns the number of rows of each table, and of the problems that both databases have. */
async function moved(
  dataDir: string,
  url: string,
  showsProgress: boolean,
): Promise<{ readonly rows: Readonly<Record<string, number>>; readonly problems: number }> {
  await using opened = new AsyncDisposableStack()
  const move = opened.adopt(await openMove(dataDir, url), (it) => it.close())
  const screen = showsProgress ? openScreen(process.stderr, { hasBlock: !isDumbTerminal() }) : undefined
  // What is printed afterwards must not stand below the progress, which is erased then.
  opened.defer(() => screen?.close())
  const show = (line: string): void => screen?.setBlock([line])
  await settleOrphanedJournal(move.from, dataDir)
  const rows = await move.copy((done, total) => show(`copying ${Math.floor((100 * done) / Math.max(1, total))} %`))
  show('reconciling …')
  const [before, after] = [await reconcileLedger(move.from), await reconcileLedger(move.to)]
  requireSame(before, after)
  await move.finish(systemClock.now())
  return { rows, problems: after.problems.length }
}

/** Both must have the same workspaces, invoices, amounts and problems. */
function requireSame(before: Reconciliation, after: Reconciliation): void {
  const textOf = (found: Reconciliation): string =>
    JSON.stringify(found, (_name, value: unknown) => (typeof value === 'bigint' ? value.toString() : value))
  if (textOf(before) === textOf(after)) return
  throw new CommandFailed(
    'the ledger in PostgreSQL does not agree with the one in the data directory, which stays in use: run weir reconcile',
  )
}
