import { ApiError } from '../../shared/errors.ts'
import type { InvoiceDocument, Seller } from './invoice-document.ts'
import { creditLines, totalsOf } from './invoice.ts'
import { documentOfRow, reversalOf } from '../../ledger/rows.ts'
import { sydneyDate, sydneyMonth, type Month } from '../../shared/money/sydney-time.ts'
import type { Workspace } from '../../workspaces/workspace.ts'
import type { Clock } from '../../shared/clock.ts'
import type { IssuedInvoice, Reversal } from './invoice-store.ts'
import { finishNote, isSameCredit } from './adjustment-notes.ts'
import { invoiceList, type InvoiceList, type InvoiceListQuery } from './invoice-list.ts'
import { withBalances, type BalancedInvoice } from './payments/balances.ts'
import { openEmails, type InvoiceEmails } from './emails/emails.ts'
import { openPayments, type Payments } from './payments/payments.ts'
import { creditRow, requireCreditAmount, requireRoom, settlingTime } from './credits.ts'
import { requireAll, requireNotMore, requireOver, requirePreviewed } from './invoice-rules.ts'
import { monthDrafts, type MonthDrafts, type MonthDraftsQuery } from './month-drafts.ts'
import { creditOf, documentsOfMonth, leftOf, reissueOf, requireDocuments } from './month-documents.ts'
import {
  type InvoicingContext,
  type InvoicingStore,
  MAX_ATTEMPTS,
  draft,
  reversed,
  isCreditedWhole,
  invoiceOf,
  noteOf,
  nextDocument,
  keptChanging,
} from './invoice-drafts.ts'

/** Drafts, issues and finds tax invoices and adjustment notes. */
export interface Invoicing {
  /** The month's charges so far, or its invoice if that has been issued. */
  preview(workspace: Workspace, month: Month): Promise<InvoiceDocument>
  /** What the workspaces would be invoiced that have no invoice for the month yet. */
  drafts(query: MonthDraftsQuery): Promise<MonthDrafts>
  /**
   * Also issues a month again after its invoice was credited in full. With the id of a preview, it issues exactly what
   * was previewed, or throws `conflict`.
   */
  issue(workspace: Workspace, month: Month, previewId?: string): Promise<InvoiceDocument>
  /**
   * Reverses rows of an issued invoice with an adjustment note; null means all that are left. An interrupted credit is
   * finished when it is requested again.
   */
  credit(
    workspace: Workspace,
    month: Month,
    requestIds: readonly string[] | null,
    reason: string,
  ): Promise<InvoiceDocument>
  /**
   * Credits an amount in AUD, excluding GST: with an adjustment note if the month has been invoiced, and otherwise with a
   * line on its invoice. Returns the note, or the preview of the month.
   */
  creditAmount(workspace: Workspace, month: Month, amount: string, reason: string): Promise<InvoiceDocument>
  /** Finishes the document that an earlier process left unfinished, if there is one. */
  finishCredit(): Promise<void>
  /** Reverses a row that has not been invoiced. */
  correct(requestId: string, reason: string): Promise<void>
  list(workspace?: Workspace): Promise<readonly InvoiceDocument[]>
  /** A page of documents, the newest first, each with what is owed on it. */
  page(query: Omit<InvoiceListQuery, 'today'>): Promise<InvoiceList>
  /** The document with what is owed on it now. */
  balanced(document: InvoiceDocument): Promise<BalancedInvoice>
  byNumber(number: string): Promise<InvoiceDocument>
  /** The valid invoice of a month: the last one, if it was issued again. */
  ofMonth(workspace: Workspace, month: Month): Promise<InvoiceDocument>
  readonly payments: Payments
  readonly emails: InvoiceEmails
}

/** `isMailed`: the service sends the e-mails that issuing queues. */
export function openInvoicing(
  given: InvoicingStore,
  clock: Clock,
  seller: Seller | undefined,
  isMailed = false,
): Invoicing {
  const store: InvoicingStore = {
    ...given,
    issueInvoice: (invoice, rowsExpected, rows) => given.issueInvoice(invoice, rowsExpected, rows, { isMailed }),
    finishNote: (note) => given.finishNote(note, { isMailed }),
  }
  const context: InvoicingContext = { store, clock, seller }
  const today = (): string => sydneyDate(clock.now())
  return {
    preview: (workspace, month) => preview(context, workspace, month),
    drafts: (query) => monthDrafts(context, today(), query),
    issue: (workspace, month, previewId) => issue(context, workspace, month, previewId),
    credit: (workspace, month, requestIds, reason) => credit(context, workspace, month, requestIds, reason),
    creditAmount: (workspace, month, amount, reason) => creditAmount(context, workspace, month, amount, reason),
    finishCredit: async () => void (await finishNote(store, clock)),
    correct: (requestId, reason) => correct(context, requestId, reason),
    list: (workspace) => list(context, workspace),
    page: (query) => invoiceList(store, { ...query, today: today() }),
    async balanced(document) {
      const [balanced = { ...document, balance: null }] = await withBalances(store, [document], today())
      return balanced
    },
    byNumber: (number) => byNumber(context, number),
    ofMonth: async (workspace, month) => (await requireDocuments(store, workspace, month)).invoice.document,
    payments: openPayments(store, clock),
    emails: openEmails(store, clock, isMailed),
  }
}

async function preview(context: InvoicingContext, workspace: Workspace, month: Month): Promise<InvoiceDocument> {
  const issued = await documentsOfMonth(context.store, workspace, month)
  return issued?.invoice.document ?? invoiceOf(context, workspace, month, await draft(context, workspace, month), null)
}

async function issue(
  context: InvoicingContext,
  workspace: Workspace,
  month: Month,
  previewId: string | undefined,
): Promise<InvoiceDocument> {
  const { store, clock } = context
  requireOver(month, clock.now())
  return untilIssued(async () => {
    const unfinished = await store.unfinishedNote()
    // It has the next invoice number. There is no need to wait for an unfinished adjustment note.
    if (unfinished?.note.kind === 'tax_invoice') {
      const { note } = (await finishNote(store, clock)) ?? unfinished
      const isSame = note.workspaceId === workspace.id && note.period === month.name
      if (isSame && previewId === undefined) return note.document
    }
    const documents = await documentsOfMonth(store, workspace, month)
    if (!documents) return issueFirst(context, workspace, month, previewId)
    if (previewId === undefined) return reissue(context, workspace, month)
    throw new ApiError(
      'conflict',
      `${month.name} has been invoiced since it was previewed: ${documents.invoice.number}.`,
      { param: 'preview_id' },
    )
  })
}

async function issueFirst(
  context: InvoicingContext,
  workspace: Workspace,
  month: Month,
  previewId: string | undefined,
): Promise<InvoiceDocument | undefined> {
  const { store } = context
  const next = await nextDocument(context, 'tax_invoice', workspace, month)
  if (await documentsOfMonth(store, workspace, month)) return undefined
  const content = await draft(context, workspace, month)
  if (content.lines.length === 0) {
    throw new ApiError('conflict', `${workspace.name} owes nothing for ${month.name}.`, { param: 'period' })
  }
  if (previewId !== undefined) requirePreviewed(previewId, invoiceOf(context, workspace, month, content, null))
  const it = invoiceOf(context, workspace, month, content, next)
  return (await store.issueInvoice(next.record(it), content.rowsExpected, content.capacity)) ? it : undefined
}

async function reissue(
  context: InvoicingContext,
  workspace: Workspace,
  month: Month,
): Promise<InvoiceDocument | undefined> {
  const next = await nextDocument(context, 'tax_invoice', workspace, month)
  const documents = await requireDocuments(context.store, workspace, month)
  const { invoice, notes, rowsOfMonth } = documents
  if (!(await isCreditedWhole(context, workspace, month, documents))) {
    throw new ApiError(
      'conflict',
      `${month.name} has already been invoiced: ${invoice.number}. Credit all of it first, and then issue the month again.`,
      { param: 'period' },
    )
  }
  const reversal = reissueOf(documents, `Issued again as ${next.number}.`)
  const { lines, counts } = await reversed(context, workspace, month, reversal)
  const { requests, estimated_requests: estimatedRequests } = invoice.document
  const content = { lines, counts: { requests, estimatedRequests, rows: counts.rows } }
  const creditedBy = notes.map(({ number }) => number)
  const it = invoiceOf(context, workspace, month, content, next, {
    kind: 'replaces',
    number: invoice.number,
    creditedBy,
  })
  return issueInSteps(context, next.record(it), rowsOfMonth, reversal)
}

async function credit(
  context: InvoicingContext,
  workspace: Workspace,
  month: Month,
  requestIds: readonly string[] | null,
  reason: string,
): Promise<InvoiceDocument> {
  const { store, clock } = context
  await requireDocuments(store, workspace, month)
  return untilIssued(async () => {
    const earlier = await finishNote(store, clock)
    if (earlier && isSameCredit(earlier, { workspaceId: workspace.id, period: month.name, requestIds, reason })) {
      return earlier.note.document
    }
    const { number, at, record } = await nextDocument(context, 'adjustment_note', workspace, month)
    const documents = await requireDocuments(store, workspace, month)
    const { invoice, rowsOfMonth } = documents
    const reversal = creditOf(documents, requestIds, reason)
    const content = await reversed(context, workspace, month, reversal)
    requireAll(content.counts.rows, requestIds, invoice)
    requireNotMore(totalsOf(content.lines).exact, leftOf(documents), invoice)
    const it = noteOf(context, invoice, month, content, { number, at }, reason)
    return issueInSteps(context, record(it), rowsOfMonth, reversal)
  })
}

async function creditAmount(
  context: InvoicingContext,
  workspace: Workspace,
  month: Month,
  text: string,
  reason: string,
): Promise<InvoiceDocument> {
  const { store, clock } = context
  const amount = requireCreditAmount(text)
  return untilIssued(async () => {
    await finishNote(store, clock)
    if (await documentsOfMonth(store, workspace, month)) return creditInvoice(context, workspace, month, amount, reason)
    if (!(await creditOpenMonth(context, workspace, month, amount, reason))) return undefined
    return invoiceOf(context, workspace, month, await draft(context, workspace, month), null)
  })
}

async function creditInvoice(
  context: InvoicingContext,
  workspace: Workspace,
  month: Month,
  amount: bigint,
  reason: string,
): Promise<InvoiceDocument | undefined> {
  const { store } = context
  const { number, at, record } = await nextDocument(context, 'adjustment_note', workspace, month)
  const documents = await requireDocuments(store, workspace, month)
  const { invoice, notes, rowsOfMonth } = documents
  requireRoom(amount, leftOf(documents), invoice.number, notes.length)
  const row = creditRow(workspace, amount, { now: at, settledAt: at }, { reason, creditNote: number })
  const content = { lines: creditLines([row]), counts: { requests: 0, estimatedRequests: 0, rows: 1 } }
  const it = noteOf(context, invoice, month, content, { number, at }, reason)
  return (await store.issueInvoice(record(it), rowsOfMonth, [row])) ? it : undefined
}

/** A credit on a month that is not invoiced yet: a row that becomes a line of its invoice. */
async function creditOpenMonth(
  context: InvoicingContext,
  workspace: Workspace,
  month: Month,
  amount: bigint,
  reason: string,
): Promise<boolean> {
  const { store, clock } = context
  const { lines, credits } = await draft(context, workspace, month)
  requireRoom(amount, totalsOf(lines).exact, month.name, credits)
  const now = clock.now()
  const row = creditRow(workspace, amount, { now, settledAt: settlingTime(month, now) }, { reason, creditNote: '' })
  return store.addCredit(row, month, credits)
}

/** Issues a document that reverses rows, in steps. undefined if something has changed since it was computed. */
async function issueInSteps(
  { store, clock }: InvoicingContext,
  invoice: IssuedInvoice,
  rowsOfMonth: number,
  reversal: Reversal,
): Promise<InvoiceDocument | undefined> {
  if (!(await store.beginNote(invoice, rowsOfMonth, reversal))) return undefined
  await finishNote(store, clock)
  return invoice.document
}

async function correct({ store, clock }: InvoicingContext, requestId: string, reason: string): Promise<void> {
  const row = await store.usageRow(requestId)
  if (!row) throw new ApiError('not_found', `There is no settled request "${requestId}".`, { param: 'request_id' })
  const invoices = await store.invoices({ workspaceId: row.workspaceId })
  const month = sydneyMonth(row.settledAt)
  const invoice = invoices.find(({ kind, period }) => kind === 'tax_invoice' && period === month.name)
  if (invoice || documentOfRow(row) !== '') {
    throw new ApiError(
      'conflict',
      `The row has already been invoiced${invoice ? ` (${invoice.number})` : ''}. Use weir invoice credit.`,
    )
  }
  const id = `correction:${requestId}`
  if (await store.usageRow(id)) throw new ApiError('conflict', `The row has already been reversed: ${id}.`)
  const reversal = reversalOf(row, id, clock.now(), { of: requestId, reason, creditNote: '' })
  if (await store.correctRow(reversal)) return
  throw new ApiError('conflict', 'The row has been invoiced or reversed in the meantime. Read it again.')
}

async function list(
  { store }: InvoicingContext,
  workspace: Workspace | undefined,
): Promise<readonly InvoiceDocument[]> {
  const all = await store.invoices(workspace ? { workspaceId: workspace.id } : {})
  return all.map((invoice) => invoice.document)
}

async function byNumber({ store }: InvoicingContext, number: string): Promise<InvoiceDocument> {
  const [invoice] = await store.invoices({ number })
  if (!invoice) throw new ApiError('not_found', `There is no invoice "${number}".`, { param: 'number' })
  return invoice.document
}

/** Retries while the number is taken, or a row added, between reading and issuing. */
async function untilIssued(attempt: () => Promise<InvoiceDocument | undefined>): Promise<InvoiceDocument> {
  for (let tries = 0; tries < MAX_ATTEMPTS; tries++) {
    const issued = await attempt()
    if (issued) return issued
  }
  throw keptChanging()
}
