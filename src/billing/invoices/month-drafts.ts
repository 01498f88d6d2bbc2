import { ApiError } from '../../shared/errors.ts'
import type { Month } from '../../shared/money/sydney-time.ts'
import type { Workspace } from '../../workspaces/workspace.ts'
import { capacityRows } from './capacity.ts'
import { draft, invoiceOf, type InvoicingContext } from './invoice-drafts.ts'
import type { InvoiceDocument } from './invoice-document.ts'
import { previewIdOf, requireOver, requireSeller } from './invoice-rules.ts'
import { withBalances, type BalancedInvoice } from './payments/balances.ts'

/** The drafts of a month: what each workspace would be invoiced that has no invoice for it yet. */

export interface MonthDraft {
  readonly workspace: string
  /** Issues exactly this draft. */
  readonly preview_id: string
  readonly subtotal: string
  readonly gst: string
  readonly total: string
  readonly lines: number
  readonly requests: number
  readonly ledger_rows: number
  readonly warnings: readonly string[]
  /** Why it cannot be issued as it is; null if it can. */
  readonly obstacle: string | null
  /** The newest invoice of the workspace, to compare with. */
  readonly previous: PreviousInvoice | null
}

interface PreviousInvoice {
  readonly number: string | null
  readonly period: string
  readonly total: string
  readonly state: string | null
}

export interface MonthDraftsQuery {
  readonly month: Month
  /** The workspace that the page before ended with. */
  readonly after: string | undefined
  readonly limit: number
}

/** A page of drafts, in the order of the names of workspaces. */
export interface MonthDrafts {
  readonly drafts: readonly MonthDraft[]
  /** Sent as `after`, it requests the next page; null at the end. */
  readonly next: string | null
}

/** A workspace whose draft is to be issued. */
export interface ChosenDraft {
  readonly workspace: string
  readonly preview_id: string
}

export interface IssuedDraft {
  readonly workspace: string
  /** null: it was not issued. */
  readonly number: string | null
  readonly total: string | null
  readonly error: { readonly code: string; readonly message: string } | null
}

/** Credits and reissues stand between two invoices of a workspace, but rarely this many. */
const NEWEST_DOCUMENTS = 5

export async function monthDrafts(
  context: InvoicingContext,
  today: string,
  { month, after, limit }: MonthDraftsQuery,
): Promise<MonthDrafts> {
  const candidates = (await candidatesOf(context, month)).filter(({ name }) => after === undefined || name > after)
  const page = candidates.slice(0, limit)
  const drafts: MonthDraft[] = []
  for (const workspace of page) {
    const found = await draftOf(context, workspace, month, today)
    if (found) drafts.push(found)
  }
  return { drafts, next: candidates.length > limit ? (page.at(-1)?.name ?? null) : null }
}

/** One after the other. A draft that cannot be issued does not keep the others from being issued. */
export async function issueDrafts(
  issue: (workspace: string, previewId: string) => Promise<InvoiceDocument>,
  chosen: readonly ChosenDraft[],
): Promise<readonly IssuedDraft[]> {
  const results: IssuedDraft[] = []
  for (const { workspace, preview_id: previewId } of chosen) {
    try {
      const { number, total } = await issue(workspace, previewId)
      results.push({ workspace, number, total, error: null })
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      const { code, message } = error
      results.push({ workspace, number: null, total: null, error: { code, message } })
    }
  }
  return results
}

/** The documents of the month that these workspaces have, for the audit log. */
export async function draftsState(
  documentsOf: (workspace: string) => Promise<readonly InvoiceDocument[]>,
  period: string,
  drafts: readonly ChosenDraft[],
): Promise<object> {
  const documents: object[] = []
  for (const { workspace } of drafts) {
    const ofMonth = (await documentsOf(workspace)).filter((document) => document.period === period)
    documents.push(...ofMonth.map(({ number, total }) => ({ workspace, number, total })))
  }
  return { documents }
}

/** Workspaces without an invoice for the month that used something in it, or had capacity reserved. */
async function candidatesOf({ store, clock }: InvoicingContext, month: Month): Promise<readonly Workspace[]> {
  const open = new Map((await store.notInvoiced(month)).map(({ workspaceId, hasRows }) => [workspaceId, hasRows]))
  const prices = await store.priceVersions()
  const isCandidate = (workspace: Workspace): boolean => {
    const hasRows = open.get(workspace.id)
    if (hasRows === undefined) return false
    return hasRows || capacityRows(prices, workspace, month, clock.now()).length > 0
  }
  const workspaces = await store.workspaces()
  return workspaces.filter(isCandidate).toSorted((one, other) => (one.name < other.name ? -1 : 1))
}

/** undefined if the month comes to nothing. */
async function draftOf(
  context: InvoicingContext,
  workspace: Workspace,
  month: Month,
  today: string,
): Promise<MonthDraft | undefined> {
  const content = await draft(context, workspace, month)
  if (content.lines.length === 0) return undefined
  const preview = invoiceOf(context, workspace, month, content, null)
  return {
    workspace: workspace.name,
    preview_id: previewIdOf(preview),
    subtotal: preview.subtotal,
    gst: preview.gst,
    total: preview.total,
    lines: preview.lines.length,
    requests: preview.requests,
    ledger_rows: preview.ledger_rows,
    warnings: preview.warnings,
    obstacle: obstacleOf(() => {
      requireOver(month, context.clock.now())
      requireSeller(context.seller)
      invoiceOf(context, workspace, month, content, { number: '', at: context.clock.now() })
    }),
    previous: previousView(await newestInvoice(context, workspace, today)),
  }
}

function obstacleOf(check: () => void): string | null {
  try {
    check()
    return null
  } catch (error) {
    if (error instanceof ApiError) return error.message
    throw error
  }
}

async function newestInvoice(
  { store }: InvoicingContext,
  { id }: Workspace,
  today: string,
): Promise<BalancedInvoice | undefined> {
  const newest = await store.newestInvoices({ workspaceId: id, before: undefined, limit: NEWEST_DOCUMENTS })
  const documents = newest.flatMap(({ kind, document }) => (kind === 'tax_invoice' ? [document] : []))
  const [invoice] = await withBalances(store, documents.slice(0, 1), today)
  return invoice
}

function previousView(invoice: BalancedInvoice | undefined): PreviousInvoice | null {
  if (!invoice) return null
  const { number, period, total, balance } = invoice
  return { number, period, total, state: balance?.state ?? null }
}
