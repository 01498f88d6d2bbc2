import type { InvoiceDocument } from '../core/money/invoice-document.ts'
import type { LedgerRow } from '../core/money/ledger.ts'
import type { PricedSums } from '../core/money/usage-sums.ts'

export interface IssuedInvoice {
  readonly number: string
  readonly kind: InvoiceDocument['kind']
  /** Of its kind, from 1 without a gap. */
  readonly sequence: number
  readonly sellerAbn: string
  readonly workspaceId: string
  readonly period: string
  readonly periodFrom: number
  readonly periodTo: number
  readonly issuedAt: number
  readonly document: InvoiceDocument
}

/** The rows of a closed month that an adjustment note takes back. */
export interface Reversal {
  /** null: all that have not been taken back. */
  readonly requestIds: readonly string[] | null
  readonly reason: string
}

/** Issued invoices and adjustment notes. False: it was not the next one, or the month has other rows than expected. */
export interface InvoiceStore {
  invoices(filter?: { workspaceId?: string; number?: string }): Promise<readonly IssuedInvoice[]>
  issueInvoice(invoice: IssuedInvoice, rowsExpected: number, capacity: readonly LedgerRow[]): Promise<boolean>
  issueNote(note: IssuedInvoice, rowsExpected: number, reversal: Reversal): Promise<boolean>
  /** 0 where none of the kind was issued. */
  lastSequence(kind: IssuedInvoice['kind']): Promise<number>
  /** The ABNs that invoices were issued under. */
  sellers(): Promise<readonly string[]>
  /** Of the rows of a closed month that a note would take back. */
  reversibleSums(
    workspaceId: string,
    from: number,
    to: number,
    requestIds: readonly string[] | null,
  ): Promise<readonly PricedSums[]>
}
