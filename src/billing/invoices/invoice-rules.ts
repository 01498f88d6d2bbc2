import { hash } from 'node:crypto'
import { ApiError } from '../../shared/errors.ts'
import { formatAbn } from '../../shared/money/abn.ts'
import type { InvoiceDocument, Seller } from './invoice-document.ts'
import type { Month } from '../../shared/money/sydney-time.ts'
import type { InvoiceStore, IssuedInvoice } from './invoice-store.ts'

/** What must be true before an invoice is issued or credited. */

export function requireSeller(seller: Seller | undefined): Seller {
  if (seller) return seller
  throw new ApiError('invalid_value', 'A tax invoice needs a seller: set seller (name, abn, address) in weir.yaml.', {
    param: 'seller',
  })
}

/** Only a month that is over can be invoiced. */
export function requireOver(month: Month, now: number): void {
  if (month.to <= now) return
  throw new ApiError('conflict', `${month.name} is not over yet in Sydney. You can preview it.`, { param: 'period' })
}

/** A seller's invoice numbers must have no gaps, so one data directory serves only one seller. */
export async function requireSameSeller(store: InvoiceStore, abn: string): Promise<void> {
  const other = (await store.sellers()).find((it) => it !== abn)
  if (other === undefined) return
  throw new ApiError(
    'conflict',
    `This data directory has invoices of the seller with ABN ${formatAbn(other)}. Another seller needs its own data directory.`,
    { param: 'seller' },
  )
}

export function requireAll(rows: number, requestIds: readonly string[] | null, { number }: IssuedInvoice): void {
  if (requestIds !== null && rows !== new Set(requestIds).size) {
    throw new ApiError('not_found', `Some of these requests are not in ${number}, or have already been credited.`, {
      param: 'requests',
    })
  }
  if (rows === 0) throw new ApiError('conflict', `Everything in ${number} has already been credited.`)
}

/** After credits of a free amount, less of an invoice may be left than some of its rows cost. */
export function requireNotMore(amount: bigint, left: bigint, { number }: IssuedInvoice): void {
  if (-amount <= left) return
  throw new ApiError(
    'conflict',
    `These requests come to more than what is left of ${number}. Credit all of it instead.`,
  )
}

/** Identifies the content of a preview. Any change to it gives it another id. */
export function previewIdOf(preview: InvoiceDocument): string {
  return hash('sha256', JSON.stringify(preview)).slice(0, 32)
}

/** `preview`: as it would be shown now. */
export function requirePreviewed(previewId: string, preview: InvoiceDocument): void {
  if (previewId === previewIdOf(preview)) return
  throw new ApiError(
    'conflict',
    `The invoice of ${preview.workspace} for ${preview.period} has changed since it was previewed. Preview it again.`,
    { param: 'preview_id' },
  )
}
