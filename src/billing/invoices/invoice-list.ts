import { ApiError } from '../../shared/errors.ts'
import type { InvoiceStore } from './invoice-store.ts'
import { withBalances, type BalancedInvoice } from './payments/balances.ts'
import type { InvoiceState, PaymentStore } from './payments/payment-store.ts'
import { withRows } from './rows/row-links.ts'

/** A page of issued documents, the newest first. */
export interface InvoiceList {
  readonly documents: readonly BalancedInvoice[]
  /** Sent as `before`, it requests the next page; null at the end. */
  readonly next: string | null
}

export interface InvoiceListQuery {
  /** undefined: of all workspaces. */
  readonly workspaceId: string | undefined
  /** The number of the last document on the previous page. */
  readonly before: string | undefined
  /** Only tax invoices in this state. */
  readonly state: InvoiceState | undefined
  /** The date in Sydney, such as 2026-12-03. */
  readonly today: string
  readonly limit: number
}

export type InvoiceListStore = Pick<InvoiceStore, 'invoices' | 'newestInvoices'> &
  Pick<PaymentStore, 'receivables' | 'payments'>

export async function invoiceList(
  store: InvoiceListStore,
  { workspaceId, before: number, state: is, today, limit }: InvoiceListQuery,
): Promise<InvoiceList> {
  const [before] = number === undefined ? [] : await store.invoices({ workspaceId, number })
  if (number !== undefined && !before) {
    throw new ApiError('invalid_value', "'before' must be the 'next' value of the previous page.", { param: 'before' })
  }
  const found = await store.newestInvoices({ workspaceId, before, state: is && { is, today }, limit: limit + 1 })
  const shown = found.slice(0, limit)
  const next = found.length > limit ? (shown.at(-1)?.number ?? null) : null
  const documents = shown.map(({ document }) => withRows(document))
  return { documents: await withBalances(store, documents, today), next }
}
