import { ApiError } from '../../shared/errors.ts'
import { missingOfBuyer } from './buyer-identity.ts'
import { parseSignedAud, type PicoAud } from '../../shared/money/money.ts'
import type { Month } from '../../shared/money/sydney-time.ts'
import type { Workspace } from '../../workspaces/workspace.ts'
import type { InvoiceStore, IssuedInvoice, Reversal } from './invoice-store.ts'

/** The documents of one workspace and month: an invoice, the notes that adjust it, and the invoices that it replaces. */
export interface MonthDocuments {
  /** The valid invoice: the one that no other replaces. */
  readonly invoice: IssuedInvoice
  /** The adjustment notes of that invoice, oldest first. */
  readonly notes: readonly IssuedInvoice[]
  /** How many rows the month itself has, which are those of its first invoice. */
  readonly rowsOfMonth: number
}

export async function documentsOfMonth(
  store: InvoiceStore,
  workspace: Workspace,
  month: Month,
): Promise<MonthDocuments | undefined> {
  const all = await store.invoices({ workspaceId: workspace.id })
  const ofMonth = all.filter(({ period }) => period === month.name)
  const invoices = ofMonth.filter(({ kind }) => kind === 'tax_invoice')
  const invoice = invoices.find(({ number }) => invoices.every(({ document }) => document.replaces !== number))
  const first = invoices.find(({ document }) => document.replaces === null)
  if (!invoice || !first) return undefined
  const notes = ofMonth.filter(({ document }) => document.adjusts === invoice.number)
  return { invoice, notes, rowsOfMonth: first.document.ledger_rows }
}

/** Throws if the month has no invoice. */
export async function requireDocuments(
  store: InvoiceStore,
  workspace: Workspace,
  month: Month,
): Promise<MonthDocuments> {
  const found = await documentsOfMonth(store, workspace, month)
  if (found) return found
  throw new ApiError('not_found', `${workspace.name} has no invoice for ${month.name}.`, { param: 'period' })
}

/** What is left of an invoice after its adjustment notes, excluding GST, before rounding. */
export function leftOf({ invoice, notes }: MonthDocuments): PicoAud {
  return [invoice, ...notes].reduce((sum, { document }) => sum + parseSignedAud(document.lines_total), 0n)
}

/** How a note reverses rows of an invoice. Reversing everything also reverses the credits that were given on it. */
export function creditOf(
  { invoice, notes }: MonthDocuments,
  requestIds: readonly string[] | null,
  reason: string,
): Reversal {
  const { number, document, issuedAt, periodFrom, periodTo } = invoice
  const isFirst = document.replaces === null
  const last = notes.reduce((latest, note) => Math.max(latest, note.issuedAt), 0)
  const to = isFirst ? periodTo : issuedAt + 1
  return {
    rowsOf: [isFirst ? '' : number],
    creditsOf: requestIds === null ? notes.map((note) => note.number) : [],
    from: isFirst ? periodFrom : issuedAt,
    to: requestIds === null ? Math.max(to, last + 1) : to,
    requestIds,
    reason,
  }
}

/** How an invoice that was credited in full is billed again: it reverses what the notes reversed. */
export function reissueOf({ notes }: MonthDocuments, reason: string): Reversal {
  const times = notes.map(({ issuedAt }) => issuedAt)
  return {
    rowsOf: notes.map(({ number }) => number),
    creditsOf: [],
    from: Math.min(...times),
    to: Math.max(...times) + 1,
    requestIds: null,
    reason,
  }
}

/** A notice about a buyer who is not fully identified; undefined otherwise. */
export function missingBuyer({ name, buyer }: Workspace): string | undefined {
  const missing = missingOfBuyer(buyer)
  if (missing.length === 0) return undefined
  return `A tax invoice of A$1,000 or more must say who the buyer is. Missing: ${missing.join(' and ')}. Set it with weir workspaces set "${name}" --buyer-name TEXT --buyer-abn ABN --buyer-address TEXT.`
}
