import { restoreBackup } from '../restore.ts'
import { systemClock } from '../../../shared/system-clock.ts'
import { commandActor, parseFlags, sqliteConfigOf, UsageError, type Command } from '../../../cli/command.ts'
import { counted } from '../../../shared/counts.ts'
import { secondText, ZONE } from '../../../cli/terminal/times.ts'

export const restore: Command = {
  summary: 'replace a data directory with a backup',
  help: `weir restore FILE [--force]

Checks FILE, which weir backup wrote, and puts its content into the data
directory. Stop the service first. The next start brings an older database up to
date; a backup of a newer version of Weir is refused.

  --force   restore into a directory that has been used. Its content moves to
            before-restore-DATE in the same directory; nothing is deleted`,
  async run(args) {
    const flags = parseFlags(args, { force: 'boolean' }, 1)
    const [file] = flags.positionals
    if (file === undefined || file === '') throw new UsageError('give the backup to restore: weir restore FILE')
    const { dataDir } = sqliteConfigOf(flags, 'restore it with pg_restore')
    const force = flags.values['force'] === true
    const { description, replaced } = restoreBackup({
      file,
      dataDir,
      force,
      now: systemClock.now(),
      actor: commandActor(),
    })
    const { created, schema, rows } = description
    const ledgerRows = rows['ledger'] ?? 0
    flags.print({ file, data_dir: dataDir, created, schema, ledger_rows: ledgerRows, replaced: replaced ?? null }, () =>
      [
        `${dataDir} is as it was on ${secondText(created)} (${ZONE}): ${counted(ledgerRows, 'ledger row')}.`,
        ...(replaced === undefined ? [] : [`What was there before is in ${replaced}.`]),
        'Check the ledger with weir reconcile, then start the service.',
      ].join('\n'),
    )
  },
}
