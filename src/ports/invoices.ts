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

export interface InvoicePageQuery {
  /** undefined: of all workspaces. */
  readonly workspaceId: string | undefined
  /** The last document of the page before. */
  readonly before: Pick<IssuedInvoice, 'issuedAt' | 'number'> | undefined
  readonly limit: number
}

/** The rows that a document takes back. */
export interface Reversal {
  /** Takes back all rows of these documents; '' is the first invoice of the document's month. */
  readonly rowsOf: readonly string[]
  /** Takes back the credits of a free amount that these adjustment notes gave. */
  readonly creditsOf: readonly string[]
  /** All of them were settled in [from, to). */
  readonly from: number
  readonly to: number
  /** Only the rows of these requests; null: all rows that have not been taken back. */
  readonly requestIds: readonly string[] | null
  readonly reason: string
}

/** What a reversal takes back, if it were done now. */
export interface Reversible {
  readonly sums: readonly PricedSums[]
  /** The credits of a free amount among its rows. They are in the sums too. */
  readonly credits: readonly LedgerRow[]
}

/**
 * A document that takes back rows of earlier ones, while its own rows are being added. Nobody else sees it or its rows
 * until it is finished.
 */
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
 * number is not the next one, another seller has issued before, the month has other rows than expected, or the number
 * is taken by a document that is not finished.
 */
export interface InvoiceStore {
  invoices(filter?: { workspaceId?: string; number?: string }): Promise<readonly IssuedInvoice[]>
  /** A page of documents, the newest first. */
  newestInvoices(query: InvoicePageQuery): Promise<readonly IssuedInvoice[]>
  /** Issues a document and adds rows of its own to the ledger, or does neither. */
  issueInvoice(invoice: IssuedInvoice, rowsExpected: number, rows: readonly LedgerRow[]): Promise<boolean>
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
 * A document that takes back rows (an adjustment note, or an invoice that replaces a credited one) is issued in steps, so
 * that a whole month of rows never makes another row wait for long: it is begun, its rows are added a few at a time, and
 * then it is finished, which shows all of it at once. Only one can be unfinished. Any process may continue a document
 * that another one began, also at the same time.
 */
export interface AdjustmentNoteStore {
  /** Checks what issuing an invoice checks. Also false when another document is unfinished. */
  beginNote(note: IssuedInvoice, rowsExpected: number, reversal: Reversal): Promise<boolean>
  unfinishedNote(): Promise<UnfinishedNote | undefined>
  /**
   * Adds the opposite of the next rows that the document takes back, looking at no more than `rowsMax`. Has no effect
   * when somebody else has added them already. false when none are left.
   */
  continueNote(unfinished: UnfinishedNote, rowsMax: number): Promise<boolean>
  /** Issues the document. false, with no effect, when it does not have as many rows as it says. */
  finishNote(note: IssuedInvoice): Promise<boolean>
  /** What a document for this month would take back. */
  reversible(
    workspaceId: string,
    month: { readonly from: number; readonly to: number },
    reversal: Reversal,
  ): Promise<Reversible>
}

/** The secret that signs links to the rows of an invoice. */
export interface LinkSecretStore {
  linkSecret(): Promise<string | undefined>
  /** Keeps the secret that is there, if there is one. */
  addLinkSecret(secret: string): Promise<void>
  replaceLinkSecret(secret: string): Promise<void>
}
