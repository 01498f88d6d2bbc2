import { ApiError } from '../../shared/errors.ts'
import { formatAbn } from '../../shared/money/abn.ts'
import { BUYER_REQUIRED_FROM } from './buyer-identity.ts'
import {
  documentOf,
  type DocumentParts,
  type InvoiceDocument,
  type Party,
  type Reference,
  type Seller,
} from './invoice-document.ts'
import { creditLines, linesOf, recomputableLines, totalsOf, type InvoiceLine } from './invoice.ts'
import { CREDIT, documentOfRow, reversalOf, type LedgerRow } from '../../ledger/rows.ts'
import { sydneyMonth, type Month } from '../../shared/money/sydney-time.ts'
import type { PricedSums } from '../usage/usage-sums.ts'
import type { Workspace } from '../../workspaces/workspace.ts'
import type { Clock } from '../../shared/clock.ts'
import type { AdjustmentNoteStore, InvoiceStore, IssuedInvoice, Reversal } from './invoice-store.ts'
import type { AccountStore } from '../../workspaces/account-store.ts'
import type { UsageStore } from '../usage/usage-store.ts'
import { finishNote, isSameCredit } from './adjustment-notes.ts'
import { capacityRows, sumsOfCapacity } from './capacity.ts'
import { creditRow, requireCreditAmount, requireRoom, settlingTime } from './credits.ts'
import { requireAll, requireNotMore, requirePreviewed, requireSameSeller, requireSeller } from './invoice-rules.ts'
import { negated } from './priced-sums.ts'
import { creditOf, documentsOfMonth, leftOf, missingBuyer, reissueOf, type MonthDocuments } from './month-documents.ts'
import { versionRates } from '../prices/version-rates.ts'

/** Drafts, issues and finds tax invoices and adjustment notes. */
export interface Invoicing {
  /** The month's charges so far, or its invoice if that has been issued. */
  preview(workspace: Workspace, month: Month): Promise<InvoiceDocument>
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
  byNumber(number: string): Promise<InvoiceDocument>
  /** The valid invoice of a month: the last one, if it was issued again. */
  ofMonth(workspace: Workspace, month: Month): Promise<InvoiceDocument>
}

const PREFIX = { tax_invoice: 'INV', adjustment_note: 'ADJ' } as const
/** Another process may take the number or add a row between reading and issuing, but not this often. */
const MAX_ATTEMPTS = 20

export type InvoicingStore = AccountStore & UsageStore & InvoiceStore & AdjustmentNoteStore

/** The content of a document, without its number. */
interface Content {
  readonly lines: readonly InvoiceLine[]
  readonly counts: DocumentParts['counts']
}

export function openInvoicing(store: InvoicingStore, clock: Clock, seller: Seller | undefined): Invoicing {
  async function findOrThrow(workspace: Workspace, month: Month): Promise<MonthDocuments> {
    const found = await documentsOfMonth(store, workspace, month)
    if (found) return found
    throw new ApiError('not_found', `${workspace.name} has no invoice for ${month.name}.`, { param: 'period' })
  }

  /** The content of a month that is not invoiced. */
  async function draft(workspace: Workspace, month: Month) {
    const prices = await store.priceVersions()
    const capacity = capacityRows(prices, workspace, month, clock.now())
    const { used, credits } = await usedIn(workspace, month)
    const sums = [...used, ...sumsOfCapacity(capacity)]
    const lines = recomputableLines([...linesOf(sums, versionRates(prices)), ...creditLines(credits)])
    return { capacity, lines, counts: countsOf(sums), credits: credits.length, rowsExpected: countsOf(used).rows }
  }

  /** The sums of a month and its credits. Read again if a credit was added in between. */
  async function usedIn({ id }: Workspace, { from, to }: Month) {
    for (let tries = 0; tries < MAX_ATTEMPTS; tries++) {
      const credits = await store.credits(id, from, to)
      const used = await store.pricedSums(id, from, to, '')
      if (amountOf(credits) === amountOf(used.filter(isCredit))) return { used, credits }
    }
    throw keptChanging()
  }

  /** The negative of what a reversal covers. */
  async function reversed(workspace: Workspace, month: Month, reversal: Reversal) {
    const prices = await store.priceVersions()
    const { sums, credits } = await store.reversible(workspace.id, month, reversal)
    const opposite = credits.map((row) => ({ ...row, amount: -row.amount }))
    const lines = recomputableLines([...linesOf(sums.map(negated), versionRates(prices)), ...creditLines(opposite)])
    return { lines, counts: countsOf(sums) }
  }

  async function isCreditedWhole(workspace: Workspace, month: Month, documents: MonthDocuments): Promise<boolean> {
    const { sums } = await store.reversible(workspace.id, month, creditOf(documents, null, ''))
    return countsOf(sums).rows === 0
  }

  function invoiceOf(
    workspace: Workspace,
    month: Month,
    { lines, counts }: Content,
    issued: { readonly number: string; readonly at: number } | null,
    refersTo?: Reference,
  ): InvoiceDocument {
    const missing = missingBuyer(workspace)
    const { subtotal, total } = totalsOf(lines)
    if (issued && subtotal < 0n) {
      throw new ApiError(
        'conflict',
        `The credits of ${month.name} exceed its charges. Take one back with weir usage correct.`,
      )
    }
    if (issued && missing !== undefined && total >= BUYER_REQUIRED_FROM) {
      throw new ApiError('conflict', missing, { param: 'buyer' })
    }
    return documentOf({
      kind: 'tax_invoice',
      number: issued?.number ?? null,
      workspace: workspace.name,
      month,
      issuedAt: issued?.at ?? null,
      seller,
      buyer: buyerOf(workspace),
      purchaseOrder: workspace.buyer.purchaseOrder,
      lines,
      counts,
      refersTo,
      warnings: missing === undefined ? [] : [missing],
    })
  }

  /** A note is addressed to the buyer of the invoice that it adjusts, even if the workspace has another buyer today. */
  function noteOf(
    { document: invoice }: IssuedInvoice,
    month: Month,
    { lines, counts }: Content,
    issued: { readonly number: string; readonly at: number },
    reason: string,
  ): InvoiceDocument {
    return documentOf({
      kind: 'adjustment_note',
      number: issued.number,
      workspace: invoice.workspace,
      month,
      issuedAt: issued.at,
      seller,
      buyer: invoice.buyer,
      purchaseOrder: invoice.purchase_order,
      lines,
      counts,
      refersTo: { kind: 'adjusts', number: invoice.number ?? '', reason },
      warnings: [],
    })
  }

  /** The number that the next document of a kind gets, and how it is recorded. */
  async function nextDocument(kind: InvoiceDocument['kind'], workspace: Workspace, month: Month) {
    const { abn } = requireSeller(seller)
    await requireSameSeller(store, abn)
    const sequence = (await store.lastSequence(kind)) + 1
    const number = `${PREFIX[kind]}-${String(sequence).padStart(6, '0')}`
    const at = clock.now()
    const record = (it: InvoiceDocument): IssuedInvoice => ({
      number,
      kind,
      sequence,
      sellerAbn: abn,
      workspaceId: workspace.id,
      period: month.name,
      periodFrom: month.from,
      periodTo: month.to,
      issuedAt: at,
      document: it,
    })
    return { number, at, record }
  }

  /** Issues a document that reverses rows, in steps. undefined if something has changed since it was computed. */
  async function issueInSteps(
    invoice: IssuedInvoice,
    rowsOfMonth: number,
    reversal: Reversal,
  ): Promise<InvoiceDocument | undefined> {
    if (!(await store.beginNote(invoice, rowsOfMonth, reversal))) return undefined
    await finishNote(store, clock)
    return invoice.document
  }

  async function reissue(workspace: Workspace, month: Month): Promise<InvoiceDocument | undefined> {
    const next = await nextDocument('tax_invoice', workspace, month)
    const documents = await findOrThrow(workspace, month)
    const { invoice, notes, rowsOfMonth } = documents
    if (!(await isCreditedWhole(workspace, month, documents))) {
      throw new ApiError(
        'conflict',
        `${month.name} has already been invoiced: ${invoice.number}. Credit all of it first, and then issue the month again.`,
        { param: 'period' },
      )
    }
    const reversal = reissueOf(documents, `Issued again as ${next.number}.`)
    const { lines, counts } = await reversed(workspace, month, reversal)
    const { requests, estimated_requests: estimatedRequests } = invoice.document
    const content = { lines, counts: { requests, estimatedRequests, rows: counts.rows } }
    const creditedBy = notes.map(({ number }) => number)
    const it = invoiceOf(workspace, month, content, next, { kind: 'replaces', number: invoice.number, creditedBy })
    return issueInSteps(next.record(it), rowsOfMonth, reversal)
  }

  async function issueFirst(
    workspace: Workspace,
    month: Month,
    previewId: string | undefined,
  ): Promise<InvoiceDocument | undefined> {
    const next = await nextDocument('tax_invoice', workspace, month)
    if (await documentsOfMonth(store, workspace, month)) return undefined
    const content = await draft(workspace, month)
    if (content.lines.length === 0) {
      throw new ApiError('conflict', `${workspace.name} owes nothing for ${month.name}.`, { param: 'period' })
    }
    if (previewId !== undefined) requirePreviewed(previewId, invoiceOf(workspace, month, content, null))
    const it = invoiceOf(workspace, month, content, next)
    return (await store.issueInvoice(next.record(it), content.rowsExpected, content.capacity)) ? it : undefined
  }

  /** A credit on a month that is not invoiced yet: a row that becomes a line of its invoice. */
  async function creditOpenMonth(workspace: Workspace, month: Month, amount: bigint, reason: string): Promise<boolean> {
    const { lines, credits } = await draft(workspace, month)
    requireRoom(amount, totalsOf(lines).exact, month.name, credits)
    const now = clock.now()
    const row = creditRow(workspace, amount, { now, settledAt: settlingTime(month, now) }, { reason, creditNote: '' })
    return store.addCredit(row, month, credits)
  }

  async function creditInvoice(
    workspace: Workspace,
    month: Month,
    amount: bigint,
    reason: string,
  ): Promise<InvoiceDocument | undefined> {
    const { number, at, record } = await nextDocument('adjustment_note', workspace, month)
    const documents = await findOrThrow(workspace, month)
    const { invoice, notes, rowsOfMonth } = documents
    requireRoom(amount, leftOf(documents), invoice.number, notes.length)
    const row = creditRow(workspace, amount, { now: at, settledAt: at }, { reason, creditNote: number })
    const content = { lines: creditLines([row]), counts: { requests: 0, estimatedRequests: 0, rows: 1 } }
    const it = noteOf(invoice, month, content, { number, at }, reason)
    return (await store.issueInvoice(record(it), rowsOfMonth, [row])) ? it : undefined
  }

  return {
    async preview(workspace, month) {
      const issued = await documentsOfMonth(store, workspace, month)
      return issued?.invoice.document ?? invoiceOf(workspace, month, await draft(workspace, month), null)
    },
    async issue(workspace, month, previewId) {
      if (month.to > clock.now()) {
        throw new ApiError('conflict', `${month.name} is not over yet in Sydney. You can preview it.`, {
          param: 'period',
        })
      }
      return untilIssued(async () => {
        const unfinished = await store.unfinishedNote()
        // It has the next invoice number. There is no need to wait for an unfinished adjustment note.
        if (unfinished?.note.kind === 'tax_invoice') {
          const { note } = (await finishNote(store, clock)) ?? unfinished
          const isSame = note.workspaceId === workspace.id && note.period === month.name
          if (isSame && previewId === undefined) return note.document
        }
        const documents = await documentsOfMonth(store, workspace, month)
        if (!documents) return issueFirst(workspace, month, previewId)
        if (previewId === undefined) return reissue(workspace, month)
        throw new ApiError(
          'conflict',
          `${month.name} has been invoiced since it was previewed: ${documents.invoice.number}.`,
          { param: 'preview_id' },
        )
      })
    },
    async credit(workspace, month, requestIds, reason) {
      await findOrThrow(workspace, month)
      return untilIssued(async () => {
        const earlier = await finishNote(store, clock)
        if (earlier && isSameCredit(earlier, { workspaceId: workspace.id, period: month.name, requestIds, reason })) {
          return earlier.note.document
        }
        const { number, at, record } = await nextDocument('adjustment_note', workspace, month)
        const documents = await findOrThrow(workspace, month)
        const { invoice, rowsOfMonth } = documents
        const reversal = creditOf(documents, requestIds, reason)
        const content = await reversed(workspace, month, reversal)
        requireAll(content.counts.rows, requestIds, invoice)
        requireNotMore(totalsOf(content.lines).exact, leftOf(documents), invoice)
        const it = noteOf(invoice, month, content, { number, at }, reason)
        return issueInSteps(record(it), rowsOfMonth, reversal)
      })
    },
    async creditAmount(workspace, month, text, reason) {
      const amount = requireCreditAmount(text)
      return untilIssued(async () => {
        await finishNote(store, clock)
        if (await documentsOfMonth(store, workspace, month)) return creditInvoice(workspace, month, amount, reason)
        if (!(await creditOpenMonth(workspace, month, amount, reason))) return undefined
        return invoiceOf(workspace, month, await draft(workspace, month), null)
      })
    },
    async finishCredit() {
      await finishNote(store, clock)
    },
    async correct(requestId, reason) {
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
    },
    async list(workspace) {
      const all = await store.invoices(workspace ? { workspaceId: workspace.id } : {})
      return all.map((invoice) => invoice.document)
    },
    async byNumber(number) {
      const [invoice] = await store.invoices({ number })
      if (!invoice) throw new ApiError('not_found', `There is no invoice "${number}".`, { param: 'number' })
      return invoice.document
    },
    ofMonth: async (workspace, month) => (await findOrThrow(workspace, month)).invoice.document,
  }
}

/** Retries while the number is taken, or a row added, between reading and issuing. */
async function untilIssued(attempt: () => Promise<InvoiceDocument | undefined>): Promise<InvoiceDocument> {
  for (let tries = 0; tries < MAX_ATTEMPTS; tries++) {
    const issued = await attempt()
    if (issued) return issued
  }
  throw keptChanging()
}

function keptChanging(): ApiError {
  return new ApiError('conflict', 'Usage or invoices kept changing while the document was issued. Try again.', {
    waitingHelps: true,
  })
}

function buyerOf({ name, buyer }: Workspace): Party {
  return {
    name: buyer.name ?? name,
    abn: buyer.abn === null ? null : formatAbn(buyer.abn),
    address: buyer.address ?? '',
  }
}

function countsOf(sums: readonly PricedSums[]): DocumentParts['counts'] {
  const sum = (name: 'rows' | 'requests' | 'estimatedRequests'): number =>
    sums.reduce((total, it) => total + it[name], 0)
  return { requests: sum('requests'), estimatedRequests: sum('estimatedRequests'), rows: sum('rows') }
}

function isCredit({ model }: PricedSums): boolean {
  return model === CREDIT
}

function amountOf(all: readonly (PricedSums | LedgerRow)[]): bigint {
  return all.reduce((sum, { amount }) => sum + amount, 0n)
}
