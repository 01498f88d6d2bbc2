import { readFileSync } from 'node:fs'
import type { Invoicing } from '../invoices.ts'
import {
  draftsState,
  issueDrafts,
  type ChosenDraft,
  type IssuedDraft,
  type MonthDraft,
  type MonthDrafts,
} from '../month-drafts.ts'
import { formatAud, grouped, parseSignedAud } from '../../../shared/money/money.ts'
import { parseMonth, type Month } from '../../../shared/money/sydney-time.ts'
import { ProblemsFound, UsageError, type Flags, type OpenedStore } from '../../../cli/command.ts'
import { counted } from '../../../shared/counts.ts'
import { renderTable, type Column } from '../../../cli/terminal/table.ts'

/** weir invoice drafts, and weir invoice issue --drafts FILE: the drafts of a month, for all workspaces. */

/** As many as the operator's API issues in one request. */
const DRAFTS_AT_ONCE = 100
const DRAFT_COLUMNS: readonly Column<MonthDraft>[] = [
  { title: 'WORKSPACE', cell: ({ workspace }) => workspace, mayShrink: true },
  { title: 'REQUESTS', cell: ({ requests }) => grouped(String(requests)), align: 'right' },
  { title: 'GST', cell: ({ gst }) => grouped(gst), align: 'right' },
  { title: 'TOTAL', cell: ({ total }) => `A$${grouped(total)}`, align: 'right' },
  {
    title: 'PREVIOUS',
    cell: ({ previous }) => previous && `A$${grouped(previous.total)}`,
    align: 'right',
  },
  { title: 'CAN BE ISSUED', cell: ({ obstacle }) => (obstacle === null ? 'yes' : 'no') },
]
const RESULT_COLUMNS: readonly Column<IssuedDraft>[] = [
  { title: 'WORKSPACE', cell: ({ workspace }) => workspace, mayShrink: true },
  { title: 'NUMBER', cell: ({ number }) => number },
  { title: 'TOTAL', cell: ({ total }) => total && `A$${grouped(total)}`, align: 'right' },
  { title: 'REFUSED BECAUSE', cell: ({ error }) => error && error.message },
]

/** All pages: a finance team reviews a month as a whole. */
export async function showDrafts(flags: Flags, invoicing: Invoicing, month: Month): Promise<void> {
  const drafts: MonthDraft[] = []
  let next: string | null = null
  do {
    const page: MonthDrafts = await invoicing.drafts({ month, after: next ?? undefined, limit: DRAFTS_AT_ONCE })
    drafts.push(...page.drafts)
    next = page.next
  } while (next !== null)
  flags.print({ object: 'list', period: month.name, data: drafts }, (view) =>
    [
      renderTable(drafts, DRAFT_COLUMNS, view),
      '',
      `${counted(drafts.length, 'draft')}, A$${grouped(sumOf(drafts))} including GST`,
      ...drafts.flatMap(({ workspace, obstacle }) => (obstacle === null ? [] : [`${workspace}: ${obstacle}`])),
    ].join('\n'),
  )
}

const sumOf = (drafts: readonly { readonly total: string | null }[]): string =>
  formatAud(drafts.reduce((sum, { total }) => sum + parseSignedAud(total ?? '0.00'), 0n))

export async function issueFromFile(
  flags: Flags,
  { invoicing, record, accounts }: Pick<OpenedStore, 'record' | 'accounts'> & { readonly invoicing: Invoicing },
): Promise<void> {
  const { month, chosen } = readDrafts(flags.requiredText('drafts'))
  const results: IssuedDraft[] = []
  for (let from = 0; from < chosen.length; from += DRAFTS_AT_ONCE) {
    const drafts = chosen.slice(from, from + DRAFTS_AT_ONCE)
    const issued = await record(
      {
        action: 'issueDrafts',
        subject: '',
        body: { period: month.name, drafts },
        state: () => draftsState((name) => invoicing.list(accounts.workspace(name)), month.name, drafts),
      },
      () => issueDrafts((name, previewId) => invoicing.issue(accounts.workspace(name), month, previewId), drafts),
    )
    results.push(...issued)
  }
  const done = results.filter(({ number }) => number !== null)
  flags.print({ object: 'list', data: results }, (view) =>
    [
      renderTable(results, RESULT_COLUMNS, view),
      '',
      `${counted(done.length, 'invoice')} issued, A$${grouped(sumOf(done))} including GST`,
    ].join('\n'),
  )
  if (done.length < results.length) throw new ProblemsFound()
}

function readDrafts(file: string): { readonly month: Month; readonly chosen: readonly ChosenDraft[] } {
  try {
    const { period, data } = JSON.parse(readFileSync(file, 'utf8')) as {
      period: string
      data: Record<keyof ChosenDraft, unknown>[]
    }
    const month = parseMonth(period)
    const chosen = data.map(({ workspace, preview_id }) => ({
      workspace: String(workspace),
      preview_id: String(preview_id),
    }))
    if (month && chosen.length > 0) return { month, chosen }
  } catch {
    // The same advice for a file that is missing, not JSON, or something else.
  }
  throw new UsageError(`${file} must be what weir invoice drafts --json printed, with at least one draft`)
}
