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

/** An adjustment note whose rows are being added. Nobody else sees the note or its rows until it is finished. */
export interface UnfinishedNote {
  readonly note: IssuedInvoice
  readonly reversal: Reversal
  /** The last row that was looked at. */
  readonly after: { readonly settledAt: number; readonly requestId: string }
}

/**
 * Issued invoices. Issuing locks the next number (`invoices`), and the end of the ledger with its sums (`usage_sums`):
 * while an invoice is issued, nobody else issues one or adds a row. Reading locks nothing, so what a document was
 * computed from may have changed by then. Therefore issuing checks again and returns false, with no effect, when the
 * number is not the next one, another seller has issued before, or the month has other rows than expected.
 */
export interface InvoiceStore {
  invoices(filter?: { workspaceId?: string; number?: string }): Promise<readonly IssuedInvoice[]>
  /** Issues a tax invoice and adds the rows for reserved capacity to the ledger, or does neither. */
  issueInvoice(invoice: IssuedInvoice, rowsExpected: number, capacity: readonly LedgerRow[]): Promise<boolean>
  /** 0 when none of the kind was issued. */
  lastSequence(kind: IssuedInvoice['kind']): Promise<number>
  /** The ABNs that invoices were issued under. */
  sellers(): Promise<readonly string[]>
  /** Adds a row that reverses another one. false, with no effect, when the month of that row has been invoiced. */
  correctRow(reversal: LedgerRow): Promise<boolean>
}

/**
 * Adjustment notes are issued in steps, so that one which takes back a whole month never makes a row wait for long: a
 * note is begun, its rows are added a few at a time, and then it is finished, which shows all of it at once. Only one
 * can be unfinished. Any process may continue a note that another one began, also at the same time.
 */
export interface AdjustmentNoteStore {
  /** Checks what issuing an invoice checks. Also false when another note is unfinished. */
  beginNote(note: IssuedInvoice, rowsExpected: number, reversal: Reversal): Promise<boolean>
  unfinishedNote(): Promise<UnfinishedNote | undefined>
  /**
   * Adds the opposite of the next rows that the note takes back, looking at no more than `rowsMax`. Has no effect when
   * somebody else has added them already. false when none are left.
   */
  continueNote(unfinished: UnfinishedNote, rowsMax: number): Promise<boolean>
  /** Issues the note. false, with no effect, when it does not have as many rows as its document says. */
  finishNote(note: IssuedInvoice): Promise<boolean>
  /** The sums of the rows of a closed month that a note would take back. */
  reversibleSums(
    workspaceId: string,
    from: number,
    to: number,
    requestIds: readonly string[] | null,
  ): Promise<readonly PricedSums[]>
}
