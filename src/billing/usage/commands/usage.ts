import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { usageQuery, usageView } from '../views.ts'
import { tierIn } from '../usage-report.ts'
import { openInvoicing } from '../../invoices/invoices.ts'
import { writeParquet } from '../usage-parquet.ts'
import { eachPage, exportFormats, exportRows } from '../usage-export.ts'
import type { LedgerRow } from '../../../ledger/rows.ts'
import type { UsageQuery, UsageStore } from '../usage-store.ts'
import { systemClock } from '../../../shared/system-clock.ts'
import { parseFlags, UsageError, withStore, type Command, type Flags } from '../../../cli/command.ts'
import { showCacheUse } from './usage-cache.ts'
import { showRefused } from './usage-refused.ts'
import { showRequest } from './usage-request.ts'
import { audText, decimalsOf, usageText } from '../../../cli/terminal/amounts.ts'
import { counted } from '../../../shared/counts.ts'
import { renderTable, type Column } from '../../../cli/terminal/table.ts'
import { secondText, ZONE } from '../../../cli/terminal/times.ts'
import type { View } from '../../../cli/terminal/view.ts'

const fileFormats = [...exportFormats, 'parquet'] as const
type FileFormat = (typeof fileFormats)[number]

export const usage: Command = {
  summary: 'show, export or correct the usage of a workspace',
  help: `weir usage --workspace W [--from DATE] [--to DATE]
           [--service-tier TIER] [--export csv|jsonl|parquet FILE]
weir usage REQUEST_ID
weir usage refused [--workspace W] [--from DATE] [--to DATE]
weir usage cache [--workspace W]
weir usage correct REQUEST_ID --reason TEXT

Lists every request that reached an engine, oldest first, with its usage and its
cost in AUD excluding GST. One that failed shows its outcome, HTTP status and
error code. With a REQUEST_ID, the X-Request-Id of a response, it shows that
request alone. "refused" counts the requests that were refused before an engine
had them, by key and error code, and lists the newest; they cost nothing.
"cache" shows how much of the input of each key was in the caches of engines
since the service started, and why not more. "correct" reverses a wrong row that
is not invoiced yet; use weir invoice credit for a row that is.

  --workspace W            the workspace
  --from DATE, --to DATE   2026-11-15 means that day in Sydney, and --to
                           includes it; 2026-11-15T09:00:00Z is an exact time
  --service-tier TIER      only requests of this tier: default, flex or batch
  --export FORMAT FILE     write the rows to a file instead
  --reason TEXT            why the row is reversed`,
  async run(args) {
    const flags = parseFlags(
      args,
      {
        workspace: 'string',
        from: 'string',
        to: 'string',
        'service-tier': 'string',
        export: 'string',
        reason: 'string',
      },
      2,
    )
    if (flags.positionals[0] === 'correct') return correct(flags)
    if (flags.positionals[0] === 'cache') return showCacheUse(flags)
    if (flags.positionals[0] === 'refused') return showRefused(flags)
    const format = flags.text('export')
    const [file] = flags.positionals
    const isOfOne = format === undefined && flags.text('workspace') === undefined
    if (isOfOne && file !== undefined) return showRequest(flags, file)
    const workspace = flags.requiredText('workspace')
    flags.refuseMore(format === undefined ? 0 : 1)
    if (format !== undefined && !isFormat(format))
      throw new UsageError(`--export must be one of ${fileFormats.join(', ')}`)
    if (format !== undefined && !file) throw new UsageError(`give the file name: --export ${format} FILE`)
    await withStore(flags, { changes: false }, async ({ accounts, store }) => {
      const tier = flags.text('service-tier')
      const period = { from: flags.text('from'), to: flags.text('to') }
      const query = usageQuery(accounts.workspace(workspace).id, period, {
        tier: tier === undefined ? undefined : tierIn(tier),
      })
      if (format !== undefined && file !== undefined) {
        await exportTo(file, format, store, query)
        return flags.print({ file, format }, () => `Wrote ${file}.`)
      }
      const rows: LedgerRow[] = []
      for await (const page of eachPage(store, query)) rows.push(...page)
      const data = rows.map(usageView)
      const total = rows.reduce((sum, row) => sum + row.amount, 0n)
      flags.print({ object: 'list', data, total_pico_aud: total.toString() }, (view) => usageTable(rows, view))
    })
  },
}

/** The request id gets a line of its own: it is long, and weir usage correct and weir invoice credit need it. */
export function usageTable(rows: readonly LedgerRow[], view: View): string {
  const amounts = rows.map(({ amount }) => amount)
  const decimals = decimalsOf(amounts)
  const columns: readonly Column<LedgerRow>[] = [
    { title: `TIME (${ZONE.toUpperCase()})`, cell: ({ settledAt }) => secondText(settledAt) },
    { title: 'MODEL', cell: ({ model }) => model, mayShrink: true },
    { title: 'USAGE', cell: usageText },
    { title: 'COST', cell: ({ amount }) => audText(amount, decimals), align: 'right' },
  ]
  const total = amounts.reduce((sum, amount) => sum + amount, 0n)
  const table = renderTable(rows, columns, view, (row) => `${row.requestId}  ${endOf(row)}`.trimEnd())
  return `${table}\n\n${counted(rows.length, 'row')}, ${audText(total)} excluding GST`
}

/** How a request ended, unless it went well, its tier, unless that is the default, and whether its usage is an estimate. */
function endOf({ outcome, httpStatus, errorCode, correction, estimated, tier }: LedgerRow): string {
  if (correction) return `reverses ${correction.of}: ${correction.reason}`
  const error = [httpStatus, errorCode].filter((it) => it !== null).join(' ')
  const failure = error === '' ? outcome : `${outcome} (${error})`
  return [
    ...(outcome === 'completed' ? [] : [failure]),
    ...(tier === 'default' ? [] : [`${tier} tier`]),
    ...(estimated ? ['estimated'] : []),
  ].join(', ')
}

function correct(flags: Flags): Promise<void> {
  const id = flags.positionals[1]
  if (!id) throw new UsageError('give the id of the request: weir usage correct REQUEST_ID --reason TEXT')
  return withStore(flags, { changes: false }, async ({ config, store, record }) => {
    const reason = flags.requiredText('reason')
    await record({ action: 'correctUsage', subject: id, body: { reason }, state: async () => undefined }, () =>
      openInvoicing(store, systemClock, config.seller).correct(id, reason),
    )
    flags.print({ corrects: id }, () => `Reversed ${id}.`)
  })
}

async function exportTo(file: string, format: FileFormat, store: UsageStore, query: UsageQuery): Promise<void> {
  if (format !== 'parquet') return pipeline(Readable.from(exportRows(store, query, format)), createWriteStream(file))
  // Loaded only when needed, because few exports are Parquet.
  await writeParquet(store, query, file)
}

function isFormat(name: string): name is FileFormat {
  return fileFormats.some((it) => it === name)
}
