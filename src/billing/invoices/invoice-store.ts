import type { InvoiceDocument } from './invoice-document.ts'
import type { LedgerRow } from '../../ledger/rows.ts'
import type { Month } from '../../shared/money/sydney-time.ts'
import type { InvoiceState } from './payments/payment-store.ts'
import type { PricedSums } from '../usage/usage-sums.ts'

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

/** How a document is issued. */
export interface Issuing {
  /** Also queues its e-mail, in the same transaction, if its buyer has an address. By default not. */
  readonly isMailed: boolean
}

export interface InvoicePageQuery {
  /** undefined: of all workspaces. */
  readonly workspaceId: string | undefined
  /** The last document of the previous page. */
  readonly before: Pick<IssuedInvoice, 'issuedAt' | 'number'> | undefined
  /** Only tax invoices in this state, today in Sydney. */
  readonly state?: { readonly is: InvoiceState; readonly today: string } | undefined
  readonly limit: number
}

/** The rows that a document reverses. */
export interface Reversal {
  /** Reverses all rows of these documents; '' is the first invoice of the document's month. */
  readonly rowsOf: readonly string[]
  /** Reverses the credits of a free amount that these adjustment notes gave. */
  readonly creditsOf: readonly string[]
  /** All of them were settled in [from, to). */
  readonly from: number
  readonly to: number
  /** Only the rows of these requests; null: all rows that have not been reversed. */
  readonly requestIds: readonly string[] | null
  readonly reason: string
}

/** What a reversal would reverse now. */
export interface Reversible {
  readonly sums: readonly PricedSums[]
  /** The credits of a free amount among its rows. They are in the sums too. */
  readonly credits: readonly LedgerRow[]
}

/**
 * A document that reverses rows of earlier ones, while its own rows are being added. It and its rows are not visible
 * until it is finished.
 */
export interface UnfinishedNote {
  readonly note: IssuedInvoice
  readonly reversal: Reversal
  /** The last row that was read. */
  readonly after: { readonly settledAt: number; readonly requestId: string }
}

/**
 * Issued invoices. Issuing locks the next number (`invoices`), and the end of the ledger with its sums (`usage_sums`):
 * while an invoice is issued, no other process can issue one or add a row. Reading locks nothing, so what a document
 * was computed from may have changed by then. Therefore issuing checks again and returns false, with no effect, if the
 * number is not the next one, another seller has issued before, the month has other rows than expected, or the number
 * is taken by a document that is not finished.
 */
export interface InvoiceStore {
  invoices(filter?: { workspaceId?: string | undefined; number?: string }): Promise<readonly IssuedInvoice[]>
  /** The workspaces that have no invoice for a month, and whether they have rows in it. */
  notInvoiced(month: Month): Promise<readonly { readonly workspaceId: string; readonly hasRows: boolean }[]>
  /** A page of documents, the newest first. */
  newestInvoices(query: InvoicePageQuery): Promise<readonly IssuedInvoice[]>
  /** Issues a document and adds rows of its own to the ledger, or does neither. */
  issueInvoice(
    invoice: IssuedInvoice,
    rowsExpected: number,
    rows: readonly LedgerRow[],
    issuing?: Issuing,
  ): Promise<boolean>
  /** The credits of a free amount in the open or closed month [from, to), with the rows that reverse them. */
  credits(workspaceId: string, from: number, to: number): Promise<readonly LedgerRow[]>
  /**
   * Adds a credit to a month. false, with no effect, when the month has been invoiced or has another number of credits
   * than expected.
   */
  addCredit(
    credit: LedgerRow,
    month: { readonly from: number; readonly to: number },
    expected: number,
  ): Promise<boolean>
  /** 0 when none of the kind was issued. */
  lastSequence(kind: IssuedInvoice['kind']): Promise<number>
  /** The ABNs that invoices were issued under. */
  sellers(): Promise<readonly string[]>
  /** Adds a row that reverses another one. false, with no effect, when the month of that row has been invoiced. */
  correctRow(reversal: LedgerRow): Promise<boolean>
}

/**
 * A document that reverses rows (an adjustment note, or an invoice that replaces a credited one) is issued in steps, so
 * that a whole month of rows never delays another row for long: it is begun, its rows are added a few at a time, and
 * finishing it makes all of it visible at once. Only one can be unfinished. Any process may continue a document that
 * another one began, even at the same time.
 */
export interface AdjustmentNoteStore {
  /** Makes the same checks as issuing an invoice. Also false when another document is unfinished. */
  beginNote(note: IssuedInvoice, rowsExpected: number, reversal: Reversal): Promise<boolean>
  unfinishedNote(): Promise<UnfinishedNote | undefined>
  /**
   * Adds the reversals of the next rows, reading no more than `rowsMax`. Has no effect if another process has added
   * them already. false when none are left.
   */
  continueNote(unfinished: UnfinishedNote, rowsMax: number): Promise<boolean>
  /** Issues the document. false, with no effect, if its number of rows is not the expected one. */
  finishNote(note: IssuedInvoice, issuing?: Issuing): Promise<boolean>
  /** What a document for this month would reverse. */
  reversible(
    workspaceId: string,
    month: { readonly from: number; readonly to: number },
    reversal: Reversal,
  ): Promise<Reversible>
}

/** The secret that signs links to the rows of an invoice. */
export interface LinkSecretStore {
  linkSecret(): Promise<string | undefined>
  /** Keeps the existing secret, if there is one. */
  addLinkSecret(secret: string): Promise<void>
  replaceLinkSecret(secret: string): Promise<void>
}
