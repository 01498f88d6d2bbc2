import type { InvoiceDocument } from '../core/money/invoice-document.ts'
import type { LedgerRow } from '../core/money/ledger.ts'
import type { PricedSums } from '../core/money/usage-sums.ts'

export interface IssuedInvoice {
  readonly number: string
  readonly kind: InvoiceDocument['kind']
  /** Counts the documents of its kind from 1, without a gap. */
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
  /** null: all rows that have not been taken back. */
  readonly requestIds: readonly string[] | null
  readonly reason: string
}

/**
 * Issued invoices and adjustment notes. Issuing locks the next number (`invoices`), and the end of the ledger with its
 * sums (`usage_sums`): while a document is issued, nobody else issues one or adds a row. Reading locks nothing, so what a
 * document was computed from may have changed by then. Therefore issuing checks again and returns false, with no effect,
 * when the number is not the next one, another seller has issued before, or the month has other rows than expected.
 */
export interface InvoiceStore {
  invoices(filter?: { workspaceId?: string; number?: string }): Promise<readonly IssuedInvoice[]>
  /** Issues a tax invoice and adds the rows for reserved capacity to the ledger, or does neither. */
  issueInvoice(invoice: IssuedInvoice, rowsExpected: number, capacity: readonly LedgerRow[]): Promise<boolean>
  /** Issues an adjustment note and adds the opposite of each row that it takes back, or does neither. */
  issueNote(note: IssuedInvoice, rowsExpected: number, reversal: Reversal): Promise<boolean>
  /** 0 when none of the kind was issued. */
  lastSequence(kind: IssuedInvoice['kind']): Promise<number>
  /** The ABNs that invoices were issued under. */
  sellers(): Promise<readonly string[]>
  /** The sums of the rows of a closed month that a note would take back. */
  reversibleSums(
    workspaceId: string,
    from: number,
    to: number,
    requestIds: readonly string[] | null,
  ): Promise<readonly PricedSums[]>
}
