import { ApiError } from '../../shared/errors.ts'
import type { InvoiceDocument } from './invoice-document.ts'
import type { InvoiceStore } from './invoice-store.ts'
import { withRows } from './rows/row-links.ts'

/** A page of issued documents, the newest first. */
export interface InvoiceList {
  readonly documents: readonly InvoiceDocument[]
  /** Sent as `before`, it requests the next page; null at the end. */
  readonly next: string | null
}

export interface InvoiceListQuery {
  /** undefined: of all workspaces. */
  readonly workspaceId: string | undefined
  /** The number of the last document on the previous page. */
  readonly before: string | undefined
  readonly limit: number
}

export async function invoiceList(
  store: Pick<InvoiceStore, 'invoices' | 'newestInvoices'>,
  { workspaceId, before: number, limit }: InvoiceListQuery,
): Promise<InvoiceList> {
  const [before] = number === undefined ? [] : await store.invoices({ number })
  if (number !== undefined && !before) {
    throw new ApiError('invalid_value', "'before' must be the 'next' value of the previous page.", { param: 'before' })
  }
  const found = await store.newestInvoices({ workspaceId, before, limit: limit + 1 })
  const shown = found.slice(0, limit)
  const next = found.length > limit ? (shown.at(-1)?.number ?? null) : null
  return { documents: shown.map(({ document }) => withRows(document)), next }
}
