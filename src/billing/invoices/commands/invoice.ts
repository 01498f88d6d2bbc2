import { writeFileSync } from 'node:fs'
import { invoiceHtml } from '../invoice-html.ts'
import { cellsOf, COLUMNS, fullTitle, type PrintableInvoice } from '../invoice-wording.ts'
import { invoiceStates, type InvoiceState } from '../payments/payment-store.ts'
import type { InvoiceBalance, BalancedInvoice } from '../payments/balances.ts'
import type { EmailedDocument, EmailView } from '../emails/emails.ts'
import { openInvoicing, type Invoicing } from '../invoices.ts'
import { findLineRows, lineRowView, nextRows, rowsAfter, type LineRow, type LineRows } from '../rows/line-rows.ts'
import { monthSummary } from '../month-summary.ts'
import { issueFromFile, showDrafts } from './invoice-drafts.ts'
import { openRowLinks } from '../rows/row-links.ts'
import type { InvoiceDocument } from '../invoice-document.ts'
import type { DocumentLine } from '../invoice-lines.ts'
import { grouped } from '../../../shared/money/money.ts'
import { parseMonth, writtenDate, type Month } from '../../../shared/money/sydney-time.ts'
import type { Workspace } from '../../../workspaces/workspace.ts'
import { systemClock } from '../../../shared/system-clock.ts'
import { parseFlags, UsageError, withStore, type OpenedStore, type Command, type Flags } from '../../../cli/command.ts'
import { audText, decimalsOf } from '../../../cli/terminal/amounts.ts'
import { counted } from '../../../shared/counts.ts'
import { renderTable, type Column } from '../../../cli/terminal/table.ts'
import { minuteText, secondText, ZONE } from '../../../cli/terminal/times.ts'
import type { View } from '../../../cli/terminal/view.ts'

const LIST_COLUMNS: readonly Column<BalancedInvoice>[] = [
  { title: 'NUMBER', cell: ({ number }) => number },
  { title: 'WORKSPACE', cell: ({ workspace }) => workspace, mayShrink: true },
  { title: 'PERIOD', cell: ({ period }) => period },
  { title: 'DUE', cell: ({ due }) => due },
  { title: 'REFERS TO', cell: ({ adjusts, replaces }) => adjusts ?? replaces },
  { title: 'TOTAL', cell: ({ total }) => `A$${grouped(total)}`, align: 'right' },
  { title: 'STATE', cell: ({ balance }) => balance && stateText(balance.state) },
  {
    title: 'AMOUNT DUE',
    cell: ({ balance }) => balance && `A$${grouped(balance.amount_due)}`,
    align: 'right',
  },
]
const LINE_COLUMNS: readonly Column<DocumentLine>[] = COLUMNS.map((title, index) => ({
  title: title.toUpperCase(),
  cell: (line) => cellsOf(line)[index] ?? null,
  ...(index === 0 ? { mayShrink: true } : { align: 'right' }),
}))

export const invoice: Command = {
  summary: 'preview, issue, show and credit tax invoices, and record payments',
  help: `weir invoice preview --workspace W --period YYYY-MM
weir invoice issue   --workspace W --period YYYY-MM
weir invoice drafts  --period YYYY-MM
weir invoice issue   --drafts FILE
weir invoice show    --workspace W --period YYYY-MM
weir invoice show    NUMBER
weir invoice credit  --workspace W --period YYYY-MM --reason TEXT
                     (--request ID[,ID…] | --all | --amount AUD)
weir invoice rows    NUMBER --line N [--limit N] [--after PLACE]
weir invoice list    [--workspace W] [--state S] [--limit N] [--before NUMBER]
weir invoice paid    NUMBER --on DATE --reference TEXT [--amount AUD]
weir invoice unpaid  NUMBER --payment N
weir invoice send    NUMBER
weir invoice revoke-links

A period is a calendar month in Sydney. An issued invoice never changes;
"credit" reverses some or all of it with an adjustment note. A month whose
invoice is credited with --all can be issued again, under a new number. An
amount on a month that is not invoiced yet becomes a line of its invoice. Lines
are exact, the subtotal is rounded once, and GST is 10 % of the subtotal.
"drafts" lists what all workspaces would be invoiced that have no invoice for
the month yet. "drafts --json" prints it for "issue --drafts", which issues
exactly these drafts and refuses those that have changed since.
Each line links to its rows; "revoke-links" makes all links so far useless.
"rows" lists the rows of a line with what each adds to it.
"list" shows the newest documents first.
"paid" records a payment, by default of all that is due; if a credit came after
the payment, it records what was paid back. "unpaid" removes a payment that was
recorded by mistake.
"send" queues the e-mail of a document, also if it was sent before. The service
sends it, if smtp is configured and the buyer has an address.
docs/guides/invoices.md explains invoices.

  --workspace W      the workspace that is invoiced
  --period YYYY-MM   the month, such as 2026-11
  --drafts FILE      what "drafts --json" printed; leave out the drafts that
                     should wait
  --request ID,…     the requests to credit
  --all              credit everything that is left on the invoice
  --amount AUD       credit a free amount, excluding GST, such as 25.00
  --reason TEXT      why it is credited, printed on the document
  --on DATE          the day of the payment, such as 2026-12-03
  --reference TEXT   finds the payment again, such as on a bank statement
  --payment N        which payment of the invoice, from 1
  --state S          only invoices in this state:
                     ${invoiceStates.join(', ')}
  --line N           which line, from 1
  --limit N          how many documents or rows to list, 1 to 10000; by
                     default 1000
  --after PLACE      go on behind the last row of the page before
  --before NUMBER    go on behind the document with this number
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
        amount: 'string',
        drafts: 'string',
        line: 'string',
        on: 'string',
        reference: 'string',
        payment: 'string',
        state: 'string',
        after: 'string',
        limit: 'string',
        before: 'string',
        pdf: 'string',
        html: 'string',
      },
      2,
    )
    const [action, number] = flags.positionals
    await withStore(flags, { changes: false }, async ({ config, accounts, store, record }) => {
      const invoicing = openInvoicing(store, systemClock, config.seller, config.smtp !== undefined)
      const workspace = (): Workspace => accounts.workspace(flags.requiredText('workspace'))
      const links = openRowLinks(store, systemClock, {
        publicUrl: config.seller?.publicUrl,
        days: config.invoice.linkDays,
      })
      if (action === 'revoke-links') {
        const action = { action: 'revokeInvoiceLinks', subject: '', body: undefined, state: async () => undefined }
        await record(action, () => links.revoke())
        return flags.print({ revoked: true }, () => 'All links on invoices so far are revoked.')
      }
      if (action === 'list') {
        const workspaceId = flags.text('workspace') === undefined ? undefined : workspace().id
        const selection = { workspaceId, before: flags.text('before'), state: stateOf(flags), limit: flags.limit() }
        const { documents, next } = await invoicing.page(selection)
        const data = await invoicing.emails.with(await Promise.all(documents.map((document) => links.linked(document))))
        return flags.print({ object: 'list', data, next }, (view) =>
          [
            renderTable(data, LIST_COLUMNS, view),
            ...(next === null ? [] : [`\nThere are more documents: see them with --before ${next}.`]),
          ].join('\n'),
        )
      }
      if (action === 'drafts') return showDrafts(flags, invoicing, monthOf(flags))
      if (action === 'issue' && flags.text('drafts') !== undefined) {
        return issueFromFile(flags, { invoicing, record, accounts })
      }
      if (action === 'rows') {
        if (number === undefined)
          throw new UsageError('give the number of a document: weir invoice rows NUMBER --line N')
        return showRows(flags, await findLineRows(store, number, flags.requiredText('line')))
      }
      if (action === 'paid' || action === 'unpaid') await changePayments(action, number, { invoicing, record }, flags)
      if (action === 'send') await sendByEmail(number, { invoicing, record, accounts })
      const found =
        number !== undefined && ['show', 'paid', 'unpaid', 'send'].includes(action ?? '')
          ? await invoicing.byNumber(number)
          : await performed(action, { invoicing, record }, workspace(), monthOf(flags), flags)
      const printable = {
        ...(await links.linked(await invoicing.balanced(found))),
        email: await invoicing.emails.of(found),
      }
      await writeFiles(printable, flags, config.invoice.fonts)
      for (const warning of printable.warnings) process.stderr.write(`weir: ${warning}\n`)
      flags.print(printable, (view) => summary(printable, view))
    })
  },
}

async function showRows(flags: Flags, { document, line, page }: LineRows): Promise<void> {
  const limit = flags.limit()
  const found = await page(rowsAfter(flags.text('after')), limit + 1)
  const rows = found.slice(0, limit)
  const next = found.length > limit ? nextRows(rows) : null
  flags.print({ object: 'list', line, data: rows.map(lineRowView), next }, (view) => {
    const decimals = decimalsOf(rows.map(({ amount }) => amount))
    const columns: readonly Column<LineRow>[] = [
      { title: `TIME (${ZONE.toUpperCase()})`, cell: ({ row }) => secondText(row.settledAt) },
      { title: 'REQUEST', cell: ({ row }) => row.requestId },
      { title: 'QUANTITY', cell: ({ quantity }) => grouped(quantity.toString()), align: 'right' },
      { title: 'AMOUNT', cell: ({ amount }) => audText(amount, decimals), align: 'right' },
    ]
    return [
      `${fullTitle(document)}, ${line.description}`,
      '',
      renderTable(rows, columns, view),
      '',
      `${counted(rows.length, 'row')} of a line of A$${grouped(line.amount)} excluding GST`,
      ...(next === null ? [] : [`There are more rows: see them with --after ${next}.`]),
    ].join('\n')
  })
}

async function changePayments(
  action: 'paid' | 'unpaid',
  number: string | undefined,
  { invoicing, record }: { readonly invoicing: Invoicing; readonly record: OpenedStore['record'] },
  flags: Flags,
): Promise<void> {
  if (number === undefined) throw new UsageError(`give the number of an invoice: weir invoice ${action} NUMBER`)
  const state = async () => (await invoicing.balanced(await invoicing.byNumber(number))).balance ?? undefined
  if (action === 'paid') {
    const given = {
      paidOn: flags.requiredText('on'),
      reference: flags.requiredText('reference'),
      amount: flags.text('amount'),
    }
    const body = { paid_on: given.paidOn, reference: given.reference, amount: given.amount }
    await record({ action: 'recordPayment', subject: number, body, state }, () =>
      invoicing.payments.record(number, given),
    )
    return
  }
  const payment = flags.requiredText('payment')
  if (!/^[1-9]\d{0,8}$/.test(payment)) throw new UsageError('--payment must be the number of a payment, such as 1')
  await record({ action: 'removePayment', subject: `${number} ${payment}`, body: undefined, state }, () =>
    invoicing.payments.remove(number, Number(payment)),
  )
}

async function sendByEmail(
  number: string | undefined,
  { invoicing, record, accounts }: Pick<OpenedStore, 'record' | 'accounts'> & { readonly invoicing: Invoicing },
): Promise<void> {
  if (number === undefined) throw new UsageError('give the number of a document: weir invoice send NUMBER')
  const document = await invoicing.byNumber(number)
  const state = async () => (await invoicing.emails.of(document)) ?? undefined
  await record({ action: 'sendInvoice', subject: number, body: undefined, state }, () =>
    invoicing.emails.send(document, accounts.workspace(document.workspace).buyer.email),
  )
}

function stateOf(flags: Flags): InvoiceState | undefined {
  const given = flags.text('state')
  const state = invoiceStates.find((it) => it === given)
  if (state !== undefined || given === undefined) return state
  throw new UsageError(`--state must be one of ${invoiceStates.join(', ')}`)
}

/** Every action that changes something is recorded in the audit log. */
function performed(
  action: string | undefined,
  { invoicing, record }: { readonly invoicing: Invoicing; readonly record: OpenedStore['record'] },
  workspace: Workspace,
  month: Month,
  flags: Flags,
): Promise<InvoiceDocument> {
  const perform = (): Promise<InvoiceDocument> => performedNow(action, invoicing, workspace, month, flags)
  if (action !== 'issue' && action !== 'credit') return perform()
  const given = ['reason', 'request', 'all', 'amount'].map((name) => [name, flags.values[name]])
  return record(
    {
      action: `${action}Invoice`,
      subject: '',
      body: { workspace: workspace.name, period: month.name, ...Object.fromEntries(given) },
      state: () => monthSummary(invoicing, workspace, month.name),
    },
    perform,
  )
}

function performedNow(
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
      return credit(invoicing, workspace, month, flags)
    default:
      throw new UsageError(
        'choose an action: preview, drafts, issue, list, show, rows, credit, paid, unpaid, send or revoke-links',
      )
  }
}

function monthOf(flags: Flags): Month {
  const month = parseMonth(flags.requiredText('period'))
  if (!month) throw new UsageError('--period must be a month such as 2026-11')
  return month
}

function credit(invoicing: Invoicing, workspace: Workspace, month: Month, flags: Flags): Promise<InvoiceDocument> {
  const [ids, amount, reason] = [flags.text('request'), flags.text('amount'), flags.requiredText('reason')]
  const ways = [ids !== undefined, flags.values['all'] === true, amount !== undefined]
  if (ways.filter(Boolean).length !== 1) throw new UsageError('give either --request ID or --all or --amount AUD')
  if (amount !== undefined) return invoicing.creditAmount(workspace, month, amount, reason)
  return invoicing.credit(workspace, month, ids === undefined ? null : ids.split(','), reason)
}

async function writeFiles(found: PrintableInvoice, flags: Flags, fonts: readonly string[]): Promise<void> {
  const html = flags.text('html')
  if (html !== undefined) writeFileSync(html, invoiceHtml(found))
  const pdf = flags.text('pdf')
  if (pdf === undefined) return
  // Loaded only when needed, because the PDF library is large.
  const { invoicePdf } = await import('../pdf/invoice-pdf.ts')
  writeFileSync(pdf, await invoicePdf(found, fonts))
}

function summary(found: EmailedDocument<BalancedInvoice>, view: View): string {
  const { subtotal, gst, total, seller, buyer, balance, email } = found
  return [
    fullTitle(found),
    `${seller?.name ?? '(no seller in weir.yaml)'} → ${buyer.name}, ${writtenDate(found.period_from)} to ${writtenDate(found.period_to)}`,
    '',
    renderTable(found.lines, LINE_COLUMNS, view),
    '',
    `subtotal A$${grouped(subtotal)} + GST A$${grouped(gst)} = A$${grouped(total)}`,
    ...(balance ? balanceLines(found, balance) : []),
    ...(email ? [emailText(email)] : []),
  ].join('\n')
}

function emailText({ state, recipient, attempts, sent_at: sentAt, last_error: error }: EmailView): string {
  if (sentAt !== null) return `sent to ${recipient} on ${minuteText(sentAt)} (${ZONE})`
  const tried = error === null ? '' : `, attempt ${attempts}: ${error}`
  return `e-mail to ${recipient} ${state}${tried}`
}

/** What is owed, after credits and payments. */
function balanceLines({ due }: BalancedInvoice, balance: InvoiceBalance): readonly string[] {
  const by = due === null ? '' : ` by ${due}`
  return [
    ...(Number(balance.credited) === 0 ? [] : [`credited A$${grouped(balance.credited)}`]),
    ...balance.payments.map(
      ({ id, paid_on, amount, reference }) => `payment ${id}: A$${grouped(amount)} on ${paid_on}, ${reference}`,
    ),
    `amount due A$${grouped(balance.amount_due)}${by} (${stateText(balance.state)})`,
  ]
}

const stateText = (state: InvoiceState): string => state.replace('_', ' ')
