import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { usageQuery, usageView } from '../accounts/views.ts'
import { openInvoicing } from '../billing/invoices.ts'
import { eachPage, exportFormats, exportRows } from '../billing/usage-export.ts'
import type { LedgerRow } from '../core/money/ledger.ts'
import { formatAud } from '../core/money/money.ts'
import type { UsageQuery, UsageStore } from '../ports/usage.ts'
import { systemClock } from '../system-clock.ts'
import {
  parseFlags,
  print,
  requiredText,
  table,
  text,
  UsageError,
  withBooks,
  type Command,
  type Flags,
} from './command.ts'

const COLUMNS = [
  'settled',
  'model',
  'input_tokens',
  'cached_input_tokens',
  'output_tokens',
  'outcome',
  'amount_pico_aud',
]

const fileFormats = [...exportFormats, 'parquet'] as const
type FileFormat = (typeof fileFormats)[number]

export const usage: Command = {
  summary: "a workspace's ledger rows, on screen or into a file",
  help: `weir usage --workspace W [--from DATE] [--to DATE] [--export csv|jsonl|parquet FILE]
weir usage correct REQUEST_ID --reason TEXT

Every request that reached an engine, oldest first, with what it used and cost (AUD, excluding GST). A row that is wrong
and not invoiced yet is taken back by a correction, which points to it; one that is invoiced, by weir invoice credit.

  --from, --to           2026-11-15 is that day in Sydney (--to with the whole day); 2026-11-15T09:00:00Z is a time
  --export FORMAT FILE   writes the rows into a file, however many there are`,
  async run(args) {
    const flags = parseFlags(args, {
      workspace: 'string',
      from: 'string',
      to: 'string',
      export: 'string',
      reason: 'string',
    })
    if (flags.positionals[0] === 'correct') return correct(flags)
    const workspace = requiredText(flags, 'workspace')
    const format = text(flags, 'export')
    const file = flags.positionals[0]
    if (format !== undefined && !isFormat(format))
      throw new UsageError(`--export takes one of ${fileFormats.join(', ')}`)
    if (format !== undefined && !file) throw new UsageError('say which file: --export csv FILE')
    await withBooks(flags, { changes: false }, async ({ accounts, store }) => {
      const query = usageQuery(accounts.workspace(workspace).id, { from: text(flags, 'from'), to: text(flags, 'to') })
      if (format !== undefined && file !== undefined) {
        await exportTo(file, format, store, query)
        return print(flags, { file, format }, () => `written to ${file}`)
      }
      const rows: LedgerRow[] = []
      for await (const page of eachPage(store, query)) rows.push(...page)
      const data = rows.map(usageView)
      const total = rows.reduce((sum, row) => sum + row.amount, 0n)
      print(
        flags,
        { object: 'list', data, total_pico_aud: total.toString() },
        () => `${table(data, COLUMNS)}\n\n${rows.length} rows, A$${formatAud(total)} excluding GST`,
      )
    })
  },
}

function correct(flags: Flags): Promise<void> {
  const id = flags.positionals[1]
  if (!id) throw new UsageError('say which row: weir usage correct REQUEST_ID --reason TEXT')
  return withBooks(flags, { changes: false }, async ({ config, store }) => {
    await openInvoicing(store, systemClock, config.seller).correct(id, requiredText(flags, 'reason'))
    print(flags, { corrects: id }, () => `${id} was taken back`)
  })
}

async function exportTo(file: string, format: FileFormat, store: UsageStore, query: UsageQuery): Promise<void> {
  if (format !== 'parquet') return pipeline(Readable.from(exportRows(store, query, format)), createWriteStream(file))
  // Few need it, so nobody else loads it.
  const { writeParquet } = await import('../billing/usage-parquet.ts')
  await writeParquet(store, query, file)
}

function isFormat(name: string): name is FileFormat {
  return fileFormats.some((it) => it === name)
}
