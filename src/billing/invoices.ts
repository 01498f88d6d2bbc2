import { ApiError } from '../core/errors.ts'
import { documentOf, type InvoiceDocument, type Party, type Seller } from '../core/money/invoice-document.ts'
import { linesOf, type InvoiceLine } from '../core/money/invoice.ts'
import { formatAbn } from '../core/money/abn.ts'
import { reversalOf } from '../core/money/ledger.ts'
import { sydneyMonth, type Month } from '../core/money/sydney-time.ts'
import type { PricedSums } from '../core/money/usage-sums.ts'
import type { Workspace } from '../ports/accounts.ts'
import type { Clock } from '../ports/clock.ts'
import type { AdjustmentNoteStore, InvoiceStore, IssuedInvoice } from '../ports/invoices.ts'
import type { AccountStore } from '../ports/store.ts'
import type { UsageStore } from '../ports/usage.ts'
import { finishNote, isSameCredit } from './adjustment-notes.ts'
import { capacityRows, sumsOfCapacity } from './capacity.ts'
import { versionRates } from './version-rates.ts'

/** Drafts, issues and finds tax invoices and adjustment notes. */
export interface Invoicing {
  /** The month's charges so far, or its invoice if that has been issued. */
  preview(workspace: Workspace, month: Month): Promise<InvoiceDocument>
  issue(workspace: Workspace, month: Month): Promise<InvoiceDocument>
  /**
   * Reverses rows of an issued invoice with an adjustment note; null means all that are left. A credit that was cut off
   * is finished when it is asked for again.
   */
  credit(
    workspace: Workspace,
    month: Month,
    requestIds: readonly string[] | null,
    reason: string,
  ): Promise<InvoiceDocument>
  /** Finishes the adjustment note that an earlier process left unfinished, if there is one. */
  finishCredit(): Promise<void>
  /** Reverses a row that has not been invoiced. */
  correct(requestId: string, reason: string): Promise<void>
  list(workspace?: Workspace): Promise<readonly InvoiceDocument[]>
  byNumber(number: string): Promise<InvoiceDocument>
  /** The invoice of a month. */
  ofMonth(workspace: Workspace, month: Month): Promise<InvoiceDocument>
}

const PREFIX = { tax_invoice: 'INV', adjustment_note: 'ADJ' } as const
/** Another process may take the number or add a row between reading and issuing, but not this often. */
const MAX_ATTEMPTS = 20

export type InvoicingStore = AccountStore & UsageStore & InvoiceStore & AdjustmentNoteStore

export function openInvoicing(store: InvoicingStore, clock: Clock, seller: Seller | undefined): Invoicing {
  async function find(workspace: Workspace, month: Month): Promise<IssuedInvoice | undefined> {
    const all = await store.invoices({ workspaceId: workspace.id })
    return all.find(({ kind, period }) => kind === 'tax_invoice' && period === month.name)
  }

  async function findOrThrow(workspace: Workspace, month: Month): Promise<IssuedInvoice> {
    const invoice = await find(workspace, month)
    if (invoice) return invoice
    throw new ApiError('not_found', `${workspace.name} has no invoice for ${month.name}.`, { param: 'period' })
  }

  /** The content of a month's invoice, without its number. */
  async function draft(workspace: Workspace, month: Month) {
    const { prices } = await store.accounts()
    const capacity = capacityRows(prices, workspace, month, clock.now())
    const used = await store.pricedSums(workspace.id, month.from, month.to, '')
    const sums = [...used, ...sumsOfCapacity(capacity)]
    return { capacity, sums, lines: linesOf(sums, versionRates(prices)), rowsExpected: rowsIn(used) }
  }

  function document(
    kind: InvoiceDocument['kind'],
    workspace: Workspace,
    month: Month,
    content: { readonly lines: readonly InvoiceLine[]; readonly sums: readonly PricedSums[] },
    issued: { readonly number: string; readonly at: number } | null,
    adjusts?: { readonly number: string; readonly reason: string },
  ): InvoiceDocument {
    const { lines, sums } = content
    return documentOf({
      kind,
      number: issued?.number ?? null,
      workspace: workspace.name,
      month,
      issuedAt: issued?.at ?? null,
      seller,
      buyer: buyerOf(workspace),
      lines,
      counts: {
        requests: sum(sums, 'requests'),
        estimatedRequests: sum(sums, 'estimatedRequests'),
        rows: rowsIn(sums),
      },
      ...(adjusts ? { adjusts } : {}),
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

  return {
    async preview(workspace, month) {
      const issued = await find(workspace, month)
      return issued?.document ?? document('tax_invoice', workspace, month, await draft(workspace, month), null)
    },
    async issue(workspace, month) {
      if (month.to > clock.now()) {
        throw new ApiError('conflict', `${month.name} is not over yet in Sydney. You can preview it.`, {
          param: 'period',
        })
      }
      return untilIssued(async () => {
        const { number, at, record } = await nextDocument('tax_invoice', workspace, month)
        const before = await find(workspace, month)
        if (before)
          throw new ApiError('conflict', `${month.name} has already been invoiced: ${before.number}.`, {
            param: 'period',
          })
        const content = await draft(workspace, month)
        if (content.lines.length === 0) {
          throw new ApiError('conflict', `${workspace.name} owes nothing for ${month.name}.`, { param: 'period' })
        }
        const it = document('tax_invoice', workspace, month, content, { number, at })
        return (await store.issueInvoice(record(it), content.rowsExpected, content.capacity)) ? it : undefined
      })
    },
    async credit(workspace, month, requestIds, reason) {
      const invoice = await findOrThrow(workspace, month)
      return untilIssued(async () => {
        const earlier = await finishNote(store, clock)
        if (earlier && isSameCredit(earlier, { workspaceId: workspace.id, period: month.name, requestIds, reason })) {
          return earlier.note.document
        }
        const { number, at, record } = await nextDocument('adjustment_note', workspace, month)
        const { prices } = await store.accounts()
        const reversible = await store.reversibleSums(workspace.id, month.from, month.to, requestIds)
        requireAll(reversible, requestIds, invoice)
        const sums = reversible.map(negated)
        const content = { sums, lines: linesOf(sums, versionRates(prices)) }
        const adjusts = { number: invoice.number, reason }
        const it = document('adjustment_note', workspace, month, content, { number, at }, adjusts)
        const isBegun = await store.beginNote(record(it), invoice.document.ledger_rows, { requestIds, reason })
        if (!isBegun) return undefined
        await finishNote(store, clock)
        return it
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
      if (invoice || (row.correction?.creditNote ?? '') !== '') {
        throw new ApiError(
          'conflict',
          `The row has already been invoiced${invoice ? ` (${invoice.number})` : ''}. Use weir invoice credit.`,
        )
      }
      const id = `correction:${requestId}`
      if (await store.usageRow(id)) throw new ApiError('conflict', `The row has already been reversed: ${id}.`)
      const reversal = reversalOf(row, id, clock.now(), { of: requestId, reason, creditNote: '' })
      if (await store.correctRow(reversal)) return
      throw new ApiError('conflict', 'The row has been invoiced or reversed meanwhile. Look at it again.')
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
    ofMonth: async (workspace, month) => (await findOrThrow(workspace, month)).document,
  }
}

/** Tries again while the number is taken, or a row added, between reading and issuing. */
async function untilIssued(attempt: () => Promise<InvoiceDocument | undefined>): Promise<InvoiceDocument> {
  for (let tries = 0; tries < MAX_ATTEMPTS; tries++) {
    const issued = await attempt()
    if (issued) return issued
  }
  throw new ApiError('conflict', 'Usage or invoices kept changing while the document was issued. Try again.')
}

function buyerOf({ name, buyer }: Workspace): Party {
  return {
    name: buyer.name ?? name,
    abn: buyer.abn === null ? null : formatAbn(buyer.abn),
    address: buyer.address ?? '',
  }
}

function requireSeller(seller: Seller | undefined): Seller {
  if (seller) return seller
  throw new ApiError('invalid_value', 'A tax invoice needs a seller: set seller (name, abn, address) in weir.yaml.', {
    param: 'seller',
  })
}

/** A seller's invoice numbers must have no gaps, so one data directory serves only one seller. */
async function requireSameSeller(store: InvoiceStore, abn: string): Promise<void> {
  const other = (await store.sellers()).find((it) => it !== abn)
  if (other === undefined) return
  throw new ApiError(
    'conflict',
    `This data directory has invoices of the seller with ABN ${formatAbn(other)}. Another seller needs its own data directory.`,
    { param: 'seller' },
  )
}

function requireAll(
  reversible: readonly PricedSums[],
  requestIds: readonly string[] | null,
  invoice: IssuedInvoice,
): void {
  const rows = rowsIn(reversible)
  if (requestIds !== null && rows !== new Set(requestIds).size) {
    throw new ApiError(
      'not_found',
      `Some of these requests are not in ${invoice.number}, or have already been credited.`,
      {
        param: 'requests',
      },
    )
  }
  if (rows === 0) throw new ApiError('conflict', `Everything in ${invoice.number} has already been credited.`)
}

function negated(sums: PricedSums): PricedSums {
  return {
    ...sums,
    inputTokens: -sums.inputTokens,
    cachedInputTokens: -sums.cachedInputTokens,
    outputTokens: -sums.outputTokens,
    images: -sums.images,
    audioMs: -sums.audioMs,
    capacityMs: -sums.capacityMs,
    amount: -sums.amount,
  }
}

function rowsIn(sums: readonly PricedSums[]): number {
  return sum(sums, 'rows')
}

function sum(sums: readonly PricedSums[], name: 'rows' | 'requests' | 'estimatedRequests'): number {
  return sums.reduce((total, it) => total + it[name], 0)
}
