import { setPriority } from 'node:os'
import { bytesText } from '../../../shared/bytes-text.ts'
import { settleRunningService } from '../../running-service.ts'
import { batchFileBytes } from '../backup-file.ts'
import { takeBackup } from '../backup.ts'
import { systemClock } from '../../../shared/system-clock.ts'
import { isDumbTerminal } from '../../../config.ts'
import { parseFlags, sqliteConfigOf, UsageError, type Command } from '../../../cli/command.ts'
import { counted } from '../../../shared/counts.ts'
import { openScreen } from '../../../cli/terminal/screen.ts'

/** Yields to the service, which may run on the same machine. */
const LOW_PRIORITY = 10

export const backup: Command = {
  summary: 'copy the data directory to one file, even while the service runs',
  help: `weir backup FILE [--force]

Writes the ledger, invoices, workspaces, keys and prices, the operator token and
the secret of image links to FILE, as they are at one moment, the journal: rows
that the database has not taken yet, and the files of batches, unless they are
in S3. It is safe to run beside a running service. FILE appears only once it is
complete and checked.

Anyone who has the file has your books and your operator token: keep it safe.
Models, stored images and weir.yaml are not in it.
docs/guides/backup-and-upgrade.md has more.

  --force   replace FILE if it exists`,
  async run(args) {
    const flags = parseFlags(args, { force: 'boolean' }, 1)
    const [file] = flags.positionals
    if (file === undefined || file === '') throw new UsageError('give the file to write: weir backup FILE')
    const { dataDir } = sqliteConfigOf(flags, 'back it up with pg_dump')
    setPriority(LOW_PRIORITY)
    // So that the database in the backup is up to date. If it accepts no rows now, they are in the journal, which is
    // copied too.
    await settleRunningService(dataDir).catch(() => {})
    const showsProgress = process.stderr.isTTY && flags.values['json'] !== true
    const screen = showsProgress ? openScreen(process.stderr, { hasBlock: !isDumbTerminal() }) : undefined
    const { bytes, journalBytes, description } = await takeBackup({
      dataDir,
      file,
      force: flags.values['force'] === true,
      now: systemClock.now(),
      progress: (done, total) => screen?.setBlock([done === total ? 'checking …' : percent(done, total)]),
    }).finally(() => screen?.close())
    const { created, schema, database, rows, batchFilesElsewhere: elsewhere = 0 } = description
    const ledgerRows = rows['ledger'] ?? 0
    flags.print(
      {
        file,
        bytes,
        created,
        schema,
        sha256: database.sha256,
        ledger_rows: ledgerRows,
        journal_bytes: journalBytes,
        batch_file_bytes: batchFileBytes(description),
        batch_files_elsewhere: elsewhere,
      },
      () =>
        [
          `${file}: ${bytesText(bytes)}, ${counted(ledgerRows, 'ledger row')}, checked.`,
          ...(elsewhere === 0 ? [] : [`${counted(elsewhere, 'file')} of batches in S3 are not in it.`]),
          `Restore it with: weir restore ${file}`,
        ].join('\n'),
    )
  },
}

function percent(done: number, total: number): string {
  return `copying ${Math.floor((100 * done) / total)} %`
}
