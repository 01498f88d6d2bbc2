import { existsSync } from 'node:fs'
import { shipJournal } from '../../cli/settled-store.ts'
import { journalFolder } from '../journal/journal-files-on-disk.ts'
import { CommandFailed, configOf, parseFlags, UsageError, type Command } from '../../cli/command.ts'
import { counted } from '../../shared/counts.ts'

export const journal: Command = {
  summary: 'deliver the journals of a service that will not start again',
  help: `weir journal ship DIR

Brings the rows in the journal of the data directory DIR into the PostgreSQL of
the configuration, each once, and settles at nothing what was under way. For a
service that will not start again on DIR: a start does the same. Refuses a
directory whose service is running. It may be repeated.`,
  async run(args) {
    const flags = parseFlags(args, {}, 2)
    const [action, directory] = flags.positionals
    if (action !== 'ship' || directory === undefined || directory === '') {
      throw new UsageError('give the data directory of the service: weir journal ship DIR')
    }
    const { databaseUrl } = configOf(flags)
    if (databaseUrl === undefined) {
      throw new CommandFailed(
        'the configuration has no PostgreSQL; with SQLite, the next start or command on the directory brings the rows there',
      )
    }
    if (!existsSync(journalFolder(directory))) throw new CommandFailed(`${directory} has no journal`)
    const { rows, interrupted, damaged } = await shipJournal(directory, databaseUrl)
    flags.print({ data_dir: directory, rows, interrupted, damaged_segments: damaged }, () =>
      [
        `${counted(rows, 'row')} of the journal ${rows === 1 ? 'is' : 'are'} in the database.`,
        ...(interrupted > 0 ? [`${counted(interrupted, 'request')} under way settled at no charge.`] : []),
        ...(damaged > 0 ? [`The disk lost a part of ${counted(damaged, 'segment')}: see the .damaged files.`] : []),
      ].join('\n'),
    )
  },
}
