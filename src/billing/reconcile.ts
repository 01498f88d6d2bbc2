import { documentOf, type DocumentParts } from '../core/money/invoice-document.ts'
import { capacityAmount, linesOf, totalsOf, type VersionRates } from '../core/money/invoice.ts'
import type { LedgerRow } from '../core/money/ledger.ts'
import { readPricedName } from '../core/money/image-prices.ts'
import { formatCents } from '../core/money/money.ts'
import { rate } from '../core/money/rating.ts'
import { parseMonth, sydneyMonth } from '../core/money/sydney-time.ts'
import type { PricedSums } from '../core/money/usage-sums.ts'
import type { PriceVersion, Workspace } from '../ports/accounts.ts'
import type { InvoiceStore, IssuedInvoice } from '../ports/invoices.ts'
import type { LedgerStore } from '../ports/ledger.ts'
import type { AccountStore } from '../ports/store.ts'
import type { UsageStore } from '../ports/usage.ts'
import { eachPage } from './usage-export.ts'
import { addTo, emptySums } from './priced-sums.ts'
import { versionRates } from './version-rates.ts'

/** Checks sums and invoices against the ledger rows alone, and reports everything that does not match. */
export interface Reconciliation {
  readonly workspaces: number
  readonly rows: number
  readonly invoices: number
  readonly amount: bigint
  /** Empty when everything matches. */
  readonly problems: readonly Discrepancy[]
}

interface Discrepancy {
  readonly check: 'amount' | 'price_version' | 'correction' | 'sums' | 'invoice' | 'number' | 'refused'
  readonly workspace: string | null
  /** The row, sum or invoice that is wrong. */
  readonly subject: string
  readonly message: string
}

const MAX_PROBLEMS = 1000

type Books = AccountStore & UsageStore & InvoiceStore & Pick<LedgerStore, 'refusedRows'>

export async function reconcileBooks(store: Books): Promise<Reconciliation> {
  const { workspaces, prices } = await store.accounts()
  const invoices = await store.invoices()
  const problems: Discrepancy[] = []
  const report = (problem: Discrepancy): void => {
    if (problems.length < MAX_PROBLEMS) problems.push(problem)
  }
  let rows = 0
  let amount = 0n
  for (const { requestId, workspaceId, reason } of await store.refusedRows(MAX_PROBLEMS)) {
    const workspace = workspaces.find(({ id }) => id === workspaceId)?.name ?? null
    const message = `the database refused the row, so it is not billed: ${reason}`
    report({ check: 'refused', workspace, subject: requestId, message })
  }
  checkNumbers(invoices, report)
  for (const workspace of workspaces) {
    const own = invoices.filter(({ workspaceId }) => workspaceId === workspace.id)
    const books = openBooks(workspace, own, prices, report)
    for await (const page of eachPage(store, {
      workspaceId: workspace.id,
      from: 0,
      to: Number.MAX_SAFE_INTEGER,
      limit: 0,
    })) {
      const corrected = await correctedRows(store, page)
      await books.knowNotes(page, (number) => store.invoices({ number }))
      for (const row of page) {
        books.add(row, row.correction && corrected.get(row.correction.of))
        amount += row.amount
      }
      rows += page.length
    }
    books.close()
    for (const subject of await store.wrongSums(workspace.id)) {
      report({
        check: 'sums',
        workspace: workspace.name,
        subject,
        message: 'the stored sum differs from the sum of the rows',
      })
    }
  }
  return { workspaces: workspaces.length, rows, invoices: invoices.length, amount, problems }
}

/** The rows that the rows of a page reverse, by their ids. */
async function correctedRows(store: UsageStore, page: readonly LedgerRow[]): Promise<ReadonlyMap<string, LedgerRow>> {
  const ids = page.flatMap(({ correction }) => (correction ? [correction.of] : []))
  const rows = ids.length === 0 ? [] : await store.usageRows(ids)
  return new Map(rows.map((row) => [row.requestId, row]))
}

/** Sums up the rows of one workspace by the document they belong to. */
function openBooks(
  workspace: Workspace,
  invoices: readonly IssuedInvoice[],
  prices: readonly PriceVersion[],
  report: (problem: Discrepancy) => void,
) {
  const ratesOf = versionRates(prices)
  const versions = new Map(prices.map((version) => [version.id, version]))
  const notes = new Set(invoices.filter(({ kind }) => kind === 'adjustment_note').map(({ number }) => number))
  const sums = new Map<string, Map<string, PricedSums>>()
  const problem = (check: Discrepancy['check'], subject: string, message: string): void =>
    report({ check, workspace: workspace.name, subject, message })

  function gather(row: LedgerRow): void {
    const note = row.correction?.creditNote ?? ''
    if (note !== '' && !notes.has(note))
      problem('invoice', row.requestId, `the row belongs to ${note}, which was never issued`)
    const document = note === '' ? sydneyMonth(row.settledAt).name : note
    let documentSums = sums.get(document)
    if (!documentSums) sums.set(document, (documentSums = new Map()))
    const address = `${row.model} ${row.priceVersion}`
    const sum = documentSums.get(address) ?? emptySums(row.model, row.priceVersion)
    documentSums.set(address, addTo(sum, row))
  }

  return {
    /** A note may have been issued since the reconciliation began. */
    async knowNotes(
      page: readonly LedgerRow[],
      find: (number: string) => Promise<readonly IssuedInvoice[]>,
    ): Promise<void> {
      for (const note of new Set(page.map(({ correction }) => correction?.creditNote ?? ''))) {
        if (note === '' || notes.has(note)) continue
        const [found] = await find(note)
        if (found?.workspaceId === workspace.id) notes.add(note)
      }
    },
    add(row: LedgerRow, corrected: LedgerRow | undefined): void {
      checkPrice(row, versions.get(row.priceVersion), problem)
      if (row.correction) checkCorrection(row, corrected, problem)
      else checkAmount(row, ratesOf, problem)
      gather(row)
    },
    /** Checks every document against its rows. */
    close(): void {
      for (const invoice of invoices) {
        const rows = sums.get(invoice.kind === 'tax_invoice' ? invoice.period : invoice.number)
        checkInvoice(invoice, [...(rows?.values() ?? [])], ratesOf, problem)
      }
    },
  }
}

type Report = (check: Discrepancy['check'], subject: string, message: string) => void

function checkAmount(row: LedgerRow, ratesOf: (version: number) => VersionRates, problem: Report): void {
  let expected: bigint
  try {
    const rates = ratesOf(row.priceVersion)
    expected = rate(row, rates) + (rates.perHour === null ? 0n : capacityAmount(row.capacityMs ?? 0, rates.perHour))
  } catch (error) {
    return problem('price_version', row.requestId, (error as Error).message)
  }
  if (row.amount !== expected) {
    problem(
      'amount',
      row.requestId,
      `the row costs ${row.amount} pico-AUD, but its usage at price version ${row.priceVersion} costs ${expected}`,
    )
  }
}

/** A row's price version must be for its model and workspace, and in effect when the request was admitted. */
function checkPrice(row: LedgerRow, version: PriceVersion | undefined, problem: Report): void {
  if (!version) return
  const priced = row.capacityMs === undefined ? row.model : row.lane
  const isForWorkspace = version.workspaceId === null || version.workspaceId === row.workspaceId
  const isInEffect = row.correction !== undefined || version.effectiveFrom <= row.startedAt
  if (readPricedName(version.model).model === priced && isForWorkspace && isInEffect) return
  const from = new Date(version.effectiveFrom).toISOString()
  problem('price_version', row.requestId, `price version ${version.id} is for ${version.model} from ${from}`)
}

function checkCorrection(row: LedgerRow, corrected: LedgerRow | undefined, problem: Report): void {
  if (corrected && corrected.workspaceId === row.workspaceId && corrected.amount === -row.amount) return
  problem(
    'correction',
    row.requestId,
    `the row does not reverse ${row.correction?.of}, which ${corrected ? `cost ${corrected.amount} pico-AUD` : 'does not exist'}`,
  )
}

function checkInvoice(
  invoice: IssuedInvoice,
  sums: readonly PricedSums[],
  ratesOf: (version: number) => VersionRates,
  problem: Report,
): void {
  const { document, number } = invoice
  const month = parseMonth(invoice.period)
  if (month?.from !== invoice.periodFrom || month.to !== invoice.periodTo || document.number !== number) {
    return problem('invoice', number, 'its period or number differs from its document')
  }
  let lines: ReturnType<typeof linesOf>
  try {
    lines = linesOf([...sums].sort(byModelAndVersion), ratesOf)
  } catch (error) {
    return problem('invoice', number, (error as Error).message)
  }
  const parts: DocumentParts = {
    kind: invoice.kind,
    number,
    workspace: document.workspace,
    month,
    issuedAt: invoice.issuedAt,
    seller: undefined,
    buyer: document.buyer,
    lines,
    counts: { requests: 0, estimatedRequests: 0, rows: sums.reduce((count, { rows }) => count + rows, 0) },
  }
  const expected = documentOf(parts)
  if (JSON.stringify(expected.lines) !== JSON.stringify(document.lines)) {
    problem('invoice', number, `its lines add up to ${document.lines_total}, but its rows give ${expected.lines_total}`)
  }
  if (expected.ledger_rows !== document.ledger_rows) {
    problem('invoice', number, `it has ${document.ledger_rows} rows, but ${expected.ledger_rows} belong to it`)
  }
  const totals = totalsOf(lines)
  for (const name of ['subtotal', 'gst', 'total'] as const) {
    if (document[name] !== formatCents(totals[name])) {
      problem('invoice', number, `its ${name} is ${document[name]}, but should be ${formatCents(totals[name])}`)
    }
  }
}

function byModelAndVersion(one: PricedSums, other: PricedSums): number {
  if (one.model !== other.model) return one.model < other.model ? -1 : 1
  return one.priceVersion - other.priceVersion
}

/** Numbers must start at 1 and have no gaps. */
function checkNumbers(invoices: readonly IssuedInvoice[], report: (problem: Discrepancy) => void): void {
  for (const [kind, issued] of Map.groupBy(invoices, ({ kind }) => kind)) {
    const bySequence = issued.toSorted((one, other) => one.sequence - other.sequence)
    for (const [index, { sequence, number }] of bySequence.entries()) {
      if (sequence === index + 1) continue
      report({
        check: 'number',
        workspace: null,
        subject: number,
        message: `${kind} number ${index + 1} is missing before it`,
      })
      break
    }
  }
}
