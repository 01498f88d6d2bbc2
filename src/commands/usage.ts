import { MAX_USAGE_ROWS, usageQuery, usageView } from '../accounts/views.ts'
import { formatAud } from '../core/money.ts'
import type { LedgerRow } from '../core/ledger.ts'
import { parseFlags, print, requiredText, table, text, withBooks, type Command } from './command.ts'

const COLUMNS = [
  'settled',
  'model',
  'input_tokens',
  'cached_input_tokens',
  'output_tokens',
  'outcome',
  'amount_pico_aud',
]

export const usage: Command = {
  summary: "a workspace's ledger rows",
  help: `weir usage --workspace W [--from DATE] [--to DATE]

Every request that reached an engine, oldest first, with what it used and cost (AUD, excluding GST).

  --from, --to   2026-11-15 is that day in Sydney (--to with the whole day); 2026-11-15T09:00:00Z is a time`,
  async run(args) {
    const flags = parseFlags(args, { workspace: 'string', from: 'string', to: 'string' })
    const workspace = requiredText(flags, 'workspace')
    await withBooks(flags, { changes: false }, async ({ accounts, store }) => {
      const period = { from: text(flags, 'from'), to: text(flags, 'to') }
      const { id } = accounts.workspace(workspace)
      const rows: LedgerRow[] = []
      for (;;) {
        const page = await store.usage(usageQuery(id, period, { offset: rows.length }))
        rows.push(...page)
        if (page.length < MAX_USAGE_ROWS) break
      }
      const data = rows.map(usageView)
      const total = rows.reduce((sum, row) => sum + row.amount, 0n)
      print(
        flags,
        { object: 'list', data, total_pico_aud: total.toString() },
        () => `${table(data, COLUMNS)}\n\n${rows.length} requests, A$${formatAud(total)} excluding GST`,
      )
    })
  },
}
