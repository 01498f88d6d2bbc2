import { writeFileSync } from 'node:fs'
import { invoiceHtml } from '../billing/invoice-html.ts'
import { grouped, headingOf } from '../billing/invoice-wording.ts'
import { openInvoicing, type Invoicing } from '../billing/invoices.ts'
import type { InvoiceDocument } from '../core/money/invoice-document.ts'
import { parseMonth, type Month } from '../core/money/sydney-time.ts'
import type { Workspace } from '../ports/accounts.ts'
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

const LIST_COLUMNS = ['number', 'kind', 'workspace', 'period', 'issued', 'subtotal', 'gst', 'total']
const LINE_COLUMNS = ['description', 'quantity', 'rate', 'rate_per', 'amount']

export const invoice: Command = {
  summary: 'preview, issue, show and credit tax invoices',
  help: `weir invoice preview --workspace W --period YYYY-MM
weir invoice issue   --workspace W --period YYYY-MM
weir invoice show    --workspace W --period YYYY-MM
weir invoice show    NUMBER
weir invoice credit  --workspace W --period YYYY-MM --reason TEXT
                     (--request ID[,ID…] | --all)
weir invoice list    [--workspace W]

A period is a calendar month in Sydney. An issued invoice never changes;
"credit" reverses some or all of it with an adjustment note. Lines are exact,
the subtotal is rounded once, and GST is 10 % of the subtotal. docs/billing.md
explains invoices.

  --workspace W      the workspace that is invoiced
  --period YYYY-MM   the month, such as 2026-11
  --request ID,…     the requests to credit
  --all              credit everything that is left on the invoice
  --reason TEXT      why it is credited, printed on the adjustment note
  --pdf FILE         also write the document as a PDF
  --html FILE        also write the document as HTML`,
  async run(args) {
    const flags = parseFlags(
      args,
      {
        workspace: 'string',
        period: 'string',
        reason: 'string',
        request: 'string',
        all: 'boolean',
        pdf: 'string',
        html: 'string',
      },
      2,
    )
    const [action, number] = flags.positionals
    await withBooks(flags, { changes: false }, async ({ config, accounts, store }) => {
      const invoicing = openInvoicing(store, systemClock, config.seller)
      const workspace = (): Workspace => accounts.workspace(requiredText(flags, 'workspace'))
      if (action === 'list') {
        const data = await invoicing.list(text(flags, 'workspace') === undefined ? undefined : workspace())
        return print(flags, { object: 'list', data }, () => table(data, LIST_COLUMNS))
      }
      const found =
        action === 'show' && number !== undefined
          ? await invoicing.byNumber(number)
          : await perform(action, invoicing, workspace(), monthOf(flags), flags)
      await writeFiles(found, flags)
      print(flags, found, () => summary(found))
    })
  },
}

function perform(
  action: string | undefined,
  invoicing: Invoicing,
  workspace: Workspace,
  month: Month,
  flags: Flags,
): Promise<InvoiceDocument> {
  switch (action) {
    case 'preview':
      return invoicing.preview(workspace, month)
    case 'issue':
      return invoicing.issue(workspace, month)
    case 'show':
      return invoicing.ofMonth(workspace, month)
    case 'credit':
      return invoicing.credit(workspace, month, requestsIn(flags), requiredText(flags, 'reason'))
    default:
      throw new UsageError('choose an action: preview, issue, list, show or credit')
  }
}

function monthOf(flags: Flags): Month {
  const month = parseMonth(requiredText(flags, 'period'))
  if (!month) throw new UsageError('--period must be a month such as 2026-11')
  return month
}

/** null means all requests, which needs an explicit --all. */
function requestsIn(flags: Flags): readonly string[] | null {
  const ids = text(flags, 'request')
  if ((ids === undefined) === (flags.values['all'] !== true)) throw new UsageError('give either --request ID or --all')
  return ids === undefined ? null : ids.split(',')
}

async function writeFiles(found: InvoiceDocument, flags: Flags): Promise<void> {
  const html = text(flags, 'html')
  if (html !== undefined) writeFileSync(html, invoiceHtml(found))
  const pdf = text(flags, 'pdf')
  if (pdf === undefined) return
  // Loaded only when needed, because the PDF library is large.
  const { invoicePdf } = await import('../billing/invoice-pdf.ts')
  writeFileSync(pdf, await invoicePdf(found))
}

function summary(found: InvoiceDocument): string {
  const { subtotal, gst, total, seller, buyer } = found
  return [
    `${headingOf(found)} ${found.number ?? ''}`.trim(),
    `${seller?.name ?? '(no seller in weir.yaml)'} → ${buyer.name}, ${found.period_from} to ${found.period_to}`,
    '',
    table(found.lines, LINE_COLUMNS),
    '',
    `subtotal A$${grouped(subtotal)} + GST A$${grouped(gst)} = A$${grouped(total)}`,
  ].join('\n')
}
