import { capacityAmount, type VersionRates } from '../../billing/invoices/invoice.ts'
import { CREDIT, documentOfRow, type LedgerRow } from '../rows.ts'
import { pricedName, readPricedName, tierOfKind } from '../../billing/rating/price-kinds.ts'
import { freeVersions, rate } from '../../billing/rating/rating.ts'
import { sydneyMonth } from '../../shared/money/sydney-time.ts'
import type { PricedSums } from '../../billing/usage/usage-sums.ts'
import type { PriceVersion, Workspace } from '../../workspaces/workspace.ts'
import type { InvoiceStore, IssuedInvoice } from '../../billing/invoices/invoice-store.ts'
import type { LedgerStore } from '../ledger.ts'
import type { AccountStore } from '../../workspaces/account-store.ts'
import type { UsageStore } from '../../billing/usage/usage-store.ts'
import { checkDocument, checkReferences, type DocumentRows } from './reconcile-documents.ts'
import { eachPage } from '../../billing/usage/usage-export.ts'
import { addTo, emptySums } from '../../billing/invoices/priced-sums.ts'
import { versionRates } from '../../billing/prices/version-rates.ts'

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
  readonly check:
    | 'amount'
    | 'price_version'
    | 'tier'
    | 'correction'
    | 'credit'
    | 'sums'
    | 'invoice'
    | 'number'
    | 'refused'
  readonly workspace: string | null
  /** The row, sum or invoice that is wrong. */
  readonly subject: string
  readonly message: string
}

const MAX_PROBLEMS = 1000

type ReconciledStore = AccountStore & UsageStore & InvoiceStore & Pick<LedgerStore, 'refusedRows'>

export async function reconcileLedger(store: ReconciledStore): Promise<Reconciliation> {
  const [workspaces, prices] = await Promise.all([store.workspaces(), store.priceVersions()])
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
    const sums = openRowSums(workspace, own, prices, report)
    for await (const page of eachPage(store, {
      workspaceId: workspace.id,
      from: 0,
      to: Number.MAX_SAFE_INTEGER,
      limit: 0,
    })) {
      const corrected = await correctedRows(store, page)
      await sums.knowDocuments(page, (number) => store.invoices({ number }))
      for (const row of page) {
        sums.add(row, row.correction && corrected.get(row.correction.of))
        amount += row.amount
      }
      rows += page.length
    }
    sums.close()
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

/** The rows that are reversed by the rows of a page, by id. */
async function correctedRows(store: UsageStore, page: readonly LedgerRow[]): Promise<ReadonlyMap<string, LedgerRow>> {
  const ids = page.flatMap(({ correction }) => (correction ? [correction.of] : []))
  const rows = ids.length === 0 ? [] : await store.usageRows(ids)
  return new Map(rows.map((row) => [row.requestId, row]))
}

/** Sums up the rows of one workspace by the document they belong to. */
function openRowSums(
  workspace: Workspace,
  invoices: readonly IssuedInvoice[],
  prices: readonly PriceVersion[],
  report: (problem: Discrepancy) => void,
) {
  const ratesOf = versionRates(prices)
  const versions = new Map(prices.map((version) => [version.id, version]))
  const firstPriced = new Map(prices.toReversed().map((it) => [`${it.model} ${it.workspaceId}`, it.effectiveFrom]))
  const tierPricedFrom = (row: LedgerRow, { workspaceId }: PriceVersion): number =>
    firstPriced.get(`${pricedName(row.model, row.tier)} ${workspaceId}`) ?? Infinity
  const issued = new Set(invoices.map(({ number }) => number))
  const gathered = new Map<string, { readonly sums: Map<string, PricedSums>; readonly credits: LedgerRow[] }>()
  const problem = (check: Discrepancy['check'], subject: string, message: string): void =>
    report({ check, workspace: workspace.name, subject, message })

  function gather(row: LedgerRow): void {
    const number = documentOfRow(row)
    if (number !== '' && !issued.has(number))
      problem('invoice', row.requestId, `the row belongs to ${number}, which was never issued`)
    const document = number === '' ? sydneyMonth(row.settledAt).name : number
    let rows = gathered.get(document)
    if (!rows) gathered.set(document, (rows = { sums: new Map(), credits: [] }))
    const address = `${row.model} ${row.priceVersion}`
    const sum = rows.sums.get(address) ?? emptySums(row.model, row.priceVersion)
    rows.sums.set(address, addTo(sum, row))
    if (row.endpoint === CREDIT) rows.credits.push(row)
  }

  /** A month's first invoice has the rows of the month; every other document has the rows that name it. */
  function rowsOf({ kind, number, period, document }: IssuedInvoice): DocumentRows {
    const found = gathered.get(kind === 'tax_invoice' && document.replaces === null ? period : number)
    return { sums: [...(found?.sums.values() ?? [])], credits: found?.credits ?? [] }
  }

  return {
    /** A document may have been issued since the reconciliation began. */
    async knowDocuments(
      page: readonly LedgerRow[],
      find: (number: string) => Promise<readonly IssuedInvoice[]>,
    ): Promise<void> {
      for (const number of new Set(page.map(documentOfRow))) {
        if (number === '' || issued.has(number)) continue
        const [found] = await find(number)
        if (found?.workspaceId === workspace.id) issued.add(number)
      }
    },
    add(row: LedgerRow, corrected: LedgerRow | undefined): void {
      checkPrice(row, versions.get(row.priceVersion), problem)
      checkTier(row, versions.get(row.priceVersion), tierPricedFrom, problem)
      if (row.correction) checkCorrection(row, corrected, problem)
      else if (row.credit) checkCredit(row, problem)
      else checkAmount(row, ratesOf, problem)
      gather(row)
    },
    /** Checks every document against its rows. */
    close(): void {
      const wrong = (subject: string, message: string): void => problem('invoice', subject, message)
      for (const invoice of invoices) checkDocument(invoice, rowsOf(invoice), ratesOf, wrong)
      checkReferences(invoices, wrong)
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

/** A replica may read a changed price a little later than it applies. */
const PRICE_DELAY_MS = 60_000

/** A row's price version must be for its tier. A tier without a price of its own has the normal price. */
function checkTier(
  row: LedgerRow,
  version: PriceVersion | undefined,
  tierPricedFrom: (row: LedgerRow, version: PriceVersion) => number,
  problem: Report,
): void {
  const isRight = version
    ? isPriceOfTier(row, version, tierPricedFrom(row, version))
    : row.priceVersion > 0 || row.priceVersion === freeVersions[row.tier]
  if (isRight) return
  problem('tier', row.requestId, `the row's tier is ${row.tier}, but price version ${row.priceVersion} is not for it`)
}

function isPriceOfTier(row: LedgerRow, version: PriceVersion, tierPricedFrom: number): boolean {
  const priced = tierOfKind(readPricedName(version.model).kind)
  return priced === row.tier || (priced === 'default' && row.startedAt < tierPricedFrom + PRICE_DELAY_MS)
}

/** A credit has a reason and no usage, and costs less than nothing. */
function checkCredit(row: LedgerRow, problem: Report): void {
  const { amount, credit } = row
  const figures = [
    row.inputTokens,
    row.cachedInputTokens,
    row.outputTokens,
    row.images,
    row.audioMs,
    row.capacityMs ?? 0,
  ]
  if (amount < 0n && credit?.reason !== '' && figures.every((figure) => figure === 0)) return
  problem('credit', row.requestId, `a credit of ${-amount} pico-AUD must have a reason and no usage`)
}

function checkCorrection(row: LedgerRow, corrected: LedgerRow | undefined, problem: Report): void {
  if (corrected && corrected.workspaceId === row.workspaceId && corrected.amount === -row.amount) return
  problem(
    'correction',
    row.requestId,
    `the row does not reverse ${row.correction?.of}, which ${corrected ? `cost ${corrected.amount} pico-AUD` : 'does not exist'}`,
  )
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
