import { documentOf, type DocumentParts } from '../core/money/invoice-document.ts'
import { capacityAmount, linesOf, totalsOf, type VersionRates } from '../core/money/invoice.ts'
import type { LedgerRow } from '../core/money/ledger.ts'
import { readPricedName } from '../core/money/image-prices.ts'
import { formatCents } from '../core/money/money.ts'
import { rate } from '../core/money/rating.ts'
import { parseMonth, sydneyMonth } from '../core/money/sydney-time.ts'
import type { PricedSums } from '../core/money/usage-sums.ts'
import type { PriceVersion, Workspace } from '../ports/accounts.ts'
import type { IssuedInvoice } from '../ports/invoices.ts'
import type { Store } from '../ports/store.ts'
import { eachPage } from './usage-export.ts'
import { addTo, emptySums } from './priced-sums.ts'
import { versionRates } from './version-rates.ts'

/** Proves the books from their rows alone, and names what does not fit. */
export interface Reconciliation {
  readonly workspaces: number
  readonly rows: number
  readonly invoices: number
  readonly amount: bigint
  /** Empty: everything fits. */
  readonly problems: readonly Problem[]
}

export interface Problem {
  readonly check: 'amount' | 'price_version' | 'correction' | 'sums' | 'invoice' | 'number'
  readonly workspace: string | null
  /** The row or the invoice it is about. */
  readonly subject: string
  readonly message: string
}

const MAX_PROBLEMS = 1000

export async function reconcile(store: Store): Promise<Reconciliation> {
  const { workspaces, prices } = await store.accounts()
  const invoices = await store.invoices()
  const problems: Problem[] = []
  const report = (problem: Problem): void => {
    if (problems.length < MAX_PROBLEMS) problems.push(problem)
  }
  let rows = 0
  let amount = 0n
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
      for (const row of page) {
        books.add(row, row.correction && (await store.usageRow(row.correction.of)))
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
        message: 'the sum that is kept is not that of the rows',
      })
    }
  }
  return { workspaces: workspaces.length, rows, invoices: invoices.length, amount, problems }
}

/** The rows of one workspace, gathered by the document they stand in. */
function openBooks(
  workspace: Workspace,
  invoices: readonly IssuedInvoice[],
  prices: readonly PriceVersion[],
  report: (problem: Problem) => void,
) {
  const ratesOf = versionRates(prices)
  const versions = new Map(prices.map((version) => [version.id, version]))
  const notes = new Set(invoices.filter(({ kind }) => kind === 'adjustment_note').map(({ number }) => number))
  const sums = new Map<string, Map<string, PricedSums>>()
  const problem = (check: Problem['check'], subject: string, message: string): void =>
    report({ check, workspace: workspace.name, subject, message })

  function gather(row: LedgerRow): void {
    const note = row.correction?.creditNote ?? ''
    if (note !== '' && !notes.has(note))
      problem('invoice', row.requestId, `it stands in ${note}, which was never issued`)
    const document = note === '' ? sydneyMonth(row.settledAt).name : note
    let ofDocument = sums.get(document)
    if (!ofDocument) sums.set(document, (ofDocument = new Map()))
    const address = `${row.model} ${row.priceVersion}`
    const sum = ofDocument.get(address) ?? emptySums(row.model, row.priceVersion)
    ofDocument.set(address, addTo(sum, row))
  }

  return {
    add(row: LedgerRow, corrected: LedgerRow | undefined): void {
      checkPrice(row, versions.get(row.priceVersion), problem)
      if (row.correction) checkCorrection(row, corrected, problem)
      else checkAmount(row, ratesOf, problem)
      gather(row)
    },
    /** Every document is what its rows say. */
    close(): void {
      for (const invoice of invoices) {
        const rows = sums.get(invoice.kind === 'tax_invoice' ? invoice.period : invoice.number)
        checkInvoice(invoice, [...(rows?.values() ?? [])], ratesOf, problem)
      }
    },
  }
}

type Report = (check: Problem['check'], subject: string, message: string) => void

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
      `it costs ${row.amount} pico-AUD, but its usage at price ${row.priceVersion} comes to ${expected}`,
    )
  }
}

/** A row's price is of its model, for its workspace, and was there when it was admitted. */
function checkPrice(row: LedgerRow, version: PriceVersion | undefined, problem: Report): void {
  if (!version) return
  const about = row.capacityMs === undefined ? row.model : row.lane
  const isFor = version.workspaceId === null || version.workspaceId === row.workspaceId
  const isThere = row.correction !== undefined || version.effectiveFrom <= row.startedAt
  if (readPricedName(version.model).model === about && isFor && isThere) return
  problem(
    'price_version',
    row.requestId,
    `price ${version.id} is of ${version.model}, from ${new Date(version.effectiveFrom).toISOString()} on`,
  )
}

function checkCorrection(row: LedgerRow, corrected: LedgerRow | undefined, problem: Report): void {
  if (corrected && corrected.workspaceId === row.workspaceId && corrected.amount === -row.amount) return
  problem(
    'correction',
    row.requestId,
    `it does not take back ${row.correction?.of}, which ${corrected ? `cost ${corrected.amount}` : 'is not there'}`,
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
    return problem('invoice', number, 'its period or number is not that of its document')
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
    problem(
      'invoice',
      number,
      `its lines come to ${document.lines_total}, those of its rows to ${expected.lines_total}`,
    )
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

/** From 1 on, without a gap, in the order of time. */
function checkNumbers(invoices: readonly IssuedInvoice[], report: (problem: Problem) => void): void {
  for (const [kind, issued] of Map.groupBy(invoices, ({ kind }) => kind)) {
    const bySequence = issued.toSorted((one, other) => one.sequence - other.sequence)
    for (const [index, { sequence, number }] of bySequence.entries()) {
      if (sequence === index + 1) continue
      report({
        check: 'number',
        workspace: null,
        subject: number,
        message: `${kind} ${index + 1} is missing before it`,
      })
      break
    }
  }
}
