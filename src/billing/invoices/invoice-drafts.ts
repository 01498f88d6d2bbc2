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
import { CREDIT, type LedgerRow } from '../../ledger/rows.ts'
import type { Month } from '../../shared/money/sydney-time.ts'
import type { PricedSums } from '../usage/usage-sums.ts'
import type { Workspace } from '../../workspaces/workspace.ts'
import type { Clock } from '../../shared/clock.ts'
import type { EmailStore } from './emails/email-store.ts'
import type { PaymentStore } from './payments/payment-store.ts'
import type { AdjustmentNoteStore, InvoiceStore, IssuedInvoice, Reversal } from './invoice-store.ts'
import type { AccountStore } from '../../workspaces/account-store.ts'
import type { UsageStore } from '../usage/usage-store.ts'
import { capacityRows, sumsOfCapacity } from './capacity.ts'
import { requireSameSeller, requireSeller } from './invoice-rules.ts'
import { negated } from './priced-sums.ts'
import { creditOf, missingBuyer, type MonthDocuments } from './month-documents.ts'
import { versionRates } from '../prices/version-rates.ts'

/** What invoicing works with. */
export interface InvoicingContext {
  readonly store: InvoicingStore
  readonly clock: Clock
  /** undefined: the operator has not said who sells, so documents can be previewed but not issued. */
  readonly seller: Seller | undefined
}

export type InvoicingStore = AccountStore & UsageStore & InvoiceStore & AdjustmentNoteStore & PaymentStore & EmailStore

/** The content of a document, without its number. */
interface Content {
  readonly lines: readonly InvoiceLine[]
  readonly counts: DocumentParts['counts']
}

const PREFIX = { tax_invoice: 'INV', adjustment_note: 'ADJ' } as const
/** Another process may take the number or add a row between reading and issuing, but not this often. */
export const MAX_ATTEMPTS = 20

/** The content of a month that is not invoiced. */
export async function draft(context: InvoicingContext, workspace: Workspace, month: Month) {
  const { store, clock } = context
  const prices = await store.priceVersions()
  const capacity = capacityRows(prices, workspace, month, clock.now())
  const { used, credits } = await usedIn(context, workspace, month)
  const sums = [...used, ...sumsOfCapacity(capacity)]
  const lines = recomputableLines([...linesOf(sums, versionRates(prices)), ...creditLines(credits)])
  return { capacity, lines, counts: countsOf(sums), credits: credits.length, rowsExpected: countsOf(used).rows }
}

/** The sums of a month and its credits. Read again if a credit was added in between. */
async function usedIn({ store }: InvoicingContext, { id }: Workspace, { from, to }: Month) {
  for (let tries = 0; tries < MAX_ATTEMPTS; tries++) {
    const credits = await store.credits(id, from, to)
    const used = await store.pricedSums(id, from, to, '')
    if (amountOf(credits) === amountOf(used.filter(isCredit))) return { used, credits }
  }
  throw keptChanging()
}

/** The negative of what a reversal covers. */
export async function reversed({ store }: InvoicingContext, workspace: Workspace, month: Month, reversal: Reversal) {
  const prices = await store.priceVersions()
  const { sums, credits } = await store.reversible(workspace.id, month, reversal)
  const opposite = credits.map((row) => ({ ...row, amount: -row.amount }))
  const lines = recomputableLines([...linesOf(sums.map(negated), versionRates(prices)), ...creditLines(opposite)])
  return { lines, counts: countsOf(sums) }
}

export async function isCreditedWhole(
  { store }: InvoicingContext,
  workspace: Workspace,
  month: Month,
  documents: MonthDocuments,
): Promise<boolean> {
  const { sums } = await store.reversible(workspace.id, month, creditOf(documents, null, ''))
  return countsOf(sums).rows === 0
}

export function invoiceOf(
  { seller }: InvoicingContext,
  workspace: Workspace,
  month: Month,
  { lines, counts }: Content,
  issued: { readonly number: string; readonly at: number } | null,
  refersTo?: Reference,
): InvoiceDocument {
  const { subtotal, total } = totalsOf(lines)
  const missing = total >= BUYER_REQUIRED_FROM ? missingBuyer(workspace) : undefined
  if (issued && subtotal < 0n) {
    throw new ApiError(
      'conflict',
      `The credits of ${month.name} exceed its charges. Take one back with weir usage correct.`,
    )
  }
  if (issued && missing !== undefined) throw new ApiError('conflict', missing, { param: 'buyer' })
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
export function noteOf(
  { seller }: InvoicingContext,
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
export async function nextDocument(
  { store, clock, seller }: InvoicingContext,
  kind: InvoiceDocument['kind'],
  workspace: Workspace,
  month: Month,
) {
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

export function keptChanging(): ApiError {
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
