import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { capacityRows } from '../../src/billing/invoices/capacity.ts'
import { previewIdOf, requirePreviewed } from '../../src/billing/invoices/invoice-rules.ts'
import { checkDocument, checkReferences } from '../../src/ledger/reconcile/reconcile-documents.ts'
import { reconcileLedger } from '../../src/ledger/reconcile/reconcile.ts'
import { reconciliationView } from '../../src/ledger/reconcile/reconciliation-view.ts'
import { addTo, emptySums } from '../../src/billing/invoices/priced-sums.ts'
import { versionRates } from '../../src/billing/prices/version-rates.ts'
import { documentOf, type InvoiceDocument } from '../../src/billing/invoices/invoice-document.ts'
import { linesOf } from '../../src/billing/invoices/invoice.ts'
import { CREDIT, type LedgerRow } from '../../src/ledger/rows.ts'
import { parseMonth } from '../../src/shared/money/sydney-time.ts'
import type { PriceVersion, Workspace } from '../../src/workspaces/workspace.ts'
import type { IssuedInvoice } from '../../src/billing/invoices/invoice-store.ts'
import { sampleRow } from '../support/ledger-samples.ts'

const month = parseMonth('2026-10') ?? assert.fail()
const workspace = { id: 'ws_1', name: 'acme', createdAt: 0 } as Workspace
const price: PriceVersion = {
  id: 1,
  model: 'm',
  workspaceId: null,
  prices: { input_per_million: '1' },
  effectiveFrom: 0,
}
const ratesOf = versionRates([price])

/** A million tokens cost a dollar. */
const row = (id: string, changes: Partial<LedgerRow> = {}): LedgerRow =>
  sampleRow(id, { model: 'm', inputTokens: 10, amount: 10_000_000n, settledAt: month.from, startedAt: 1, ...changes })

function invoiceOf(rows: readonly LedgerRow[], changes: Partial<IssuedInvoice> = {}): IssuedInvoice {
  const kind = changes.kind ?? 'tax_invoice'
  const number = changes.number ?? 'INV-000001'
  const sums = rows.map((it) => addTo(emptySums(it.model, it.priceVersion), it))
  const document = documentOf({
    kind,
    number,
    workspace: 'acme',
    month,
    issuedAt: month.to,
    seller: undefined,
    buyer: { name: 'Acme', abn: null, address: '' },
    purchaseOrder: null,
    lines: linesOf(sums, ratesOf),
    counts: { requests: 1, estimatedRequests: 0, rows: rows.length },
    warnings: [],
  })
  return {
    number,
    kind,
    sequence: 1,
    sellerAbn: '1',
    workspaceId: 'ws_1',
    period: month.name,
    periodFrom: month.from,
    periodTo: month.to,
    issuedAt: month.to,
    document,
    ...changes,
  }
}

interface Books {
  readonly rows?: readonly LedgerRow[]
  readonly invoices?: readonly IssuedInvoice[]
  /** Issued since the reconciliation began. */
  readonly late?: readonly IssuedInvoice[]
  readonly wrongSums?: readonly string[]
  readonly refused?: number
}

async function problemsIn({ rows = [], invoices = [], late = [], wrongSums = [], refused = 0 }: Books) {
  const store = {
    workspaces: async () => [workspace],
    priceVersions: async () => [price],
    invoices: async (query?: { number?: string }) =>
      query ? [...invoices, ...late].filter(({ number }) => number === query.number) : invoices,
    refusedRows: async (limit: number) =>
      Array.from({ length: Math.min(refused, limit) }, (_, index) => ({
        requestId: `r${index}`,
        workspaceId: index === 0 ? 'ws_1' : 'gone',
        reason: 'no',
      })),
    usage: async ({ after }: { after?: unknown }) => (after ? [] : rows),
    usageRows: async (ids: readonly string[]) => rows.filter(({ requestId }) => ids.includes(requestId)),
    wrongSums: async () => wrongSums,
  } as unknown as Parameters<typeof reconcileLedger>[0]
  return reconcileLedger(store)
}

const checked = async (books: Books) => (await problemsIn(books)).problems.map((it) => [it.check, it.subject])

describe('a reconciliation', () => {
  it('passes if every row costs what its usage does, and every document has its rows', async () => {
    const rows = [row('a'), row('b', { inputTokens: 20, amount: 20_000_000n })]
    const found = await problemsIn({ rows })
    assert.deepEqual(reconciliationView(found), {
      object: 'reconciliation',
      fits: true,
      workspaces: 1,
      rows: 2,
      invoices: 0,
      amount_pico_aud: '30000000',
      problems: [],
    })
    const wrong = await problemsIn({ rows: [row('a', { amount: 1n })] })
    assert.deepEqual(Object.entries(reconciliationView(wrong))[1], ['fits', false])
  })

  it('checks that rows have their price, of a version that exists', async () => {
    assert.deepEqual(await checked({ rows: [row('a', { amount: 10_000_001n })] }), [['amount', 'a']])
    assert.deepEqual(await checked({ rows: [row('a', { priceVersion: 9 })] }), [['price_version', 'a']])
    assert.deepEqual(await checked({ rows: [row('a', { startedAt: 0 })] }), [])
  })

  it('checks that corrections are the opposite of a row of the same workspace', async () => {
    const correction = { of: 'a', reason: 'x', creditNote: '' }
    const reversed = { correction, inputTokens: -10, amount: -10_000_000n }
    assert.deepEqual(await checked({ rows: [row('a'), row('b', reversed)] }), [])
    const wrong = [['correction', 'b']]
    assert.deepEqual(await checked({ rows: [row('b', reversed)] }), wrong)
    assert.deepEqual(await checked({ rows: [row('a'), row('b', { ...reversed, amount: -9n })] }), wrong)
    const other = row('a', { workspaceId: 'ws_2' })
    assert.deepEqual((await checked({ rows: [other, row('b', reversed)] })).slice(-1), wrong)
  })

  it('checks that credits are negative, with a reason and without usage', async () => {
    const credit = (changes: Partial<LedgerRow> = {}) =>
      row('c', {
        model: CREDIT,
        endpoint: CREDIT,
        priceVersion: 0,
        inputTokens: 0,
        amount: -1n,
        credit: { reason: 'x', creditNote: '' },
        ...changes,
      })
    assert.deepEqual(await checked({ rows: [credit()] }), [])
    for (const changes of [
      { amount: 0n },
      { amount: 1n },
      { credit: { reason: '', creditNote: '' } },
      { inputTokens: 1 },
      { cachedInputTokens: 1 },
      { outputTokens: 1 },
      { images: 1 },
      { audioMs: 1 },
      { capacityMs: 1 },
    ]) {
      const found = await checked({ rows: [credit(changes)] })
      assert.deepEqual(found[0], ['credit', 'c'], JSON.stringify(Object.keys(changes)))
    }
  })

  it('checks that sums match their rows, and reports rows that the database refused, at most 1,000', async () => {
    assert.deepEqual(await checked({ wrongSums: ['usage_hours x'] }), [['sums', 'usage_hours x']])
    const { problems } = await problemsIn({ refused: 2, wrongSums: ['x'] })
    assert.deepEqual(
      problems.map(({ check, workspace: name }) => [check, name]),
      [
        ['refused', 'acme'],
        ['refused', null],
        ['sums', 'acme'],
      ],
    )
    assert.equal((await problemsIn({ refused: 5000, wrongSums: ['x'] })).problems.length, 1000)
  })

  it('checks that numbers have no gaps, for each kind of document', async () => {
    const rows = [row('a')]
    const first = invoiceOf(rows)
    const later = { ...invoiceOf([], { number: 'INV-000003', sequence: 3 }), period: '2026-09' }
    const found = await problemsIn({ rows, invoices: [later, first] })
    const gap = found.problems.find(({ check }) => check === 'number')
    assert.deepEqual([gap?.subject, gap?.message], ['INV-000003', 'tax_invoice number 2 is missing before it'])
    assert.deepEqual(await checked({ rows, invoices: [first] }), [])
  })

  it('checks that rows belong to documents of their workspace, including documents issued meanwhile', async () => {
    const correction = { of: 'a', reason: 'x', creditNote: 'ADJ-000001' }
    const rows = [row('a'), row('b', { correction, inputTokens: -10, amount: -10_000_000n })]
    assert.deepEqual(await checked({ rows }), [['invoice', 'b']])
    const note = invoiceOf([], { kind: 'adjustment_note', number: 'ADJ-000001' })
    assert.deepEqual(await checked({ rows, late: [note] }), [])
    assert.deepEqual(await checked({ rows, late: [{ ...note, workspaceId: 'ws_2' }] }), [['invoice', 'b']])
  })
})

describe('the reconciliation of a document', () => {
  const rows = [row('a')]
  const sums = rows.map((it) => addTo(emptySums(it.model, it.priceVersion), it))
  function wrongIn(invoice: IssuedInvoice, given = sums): readonly string[] {
    const found: string[] = []
    checkDocument(invoice, { sums: given, credits: [] }, ratesOf, (_number, message) => void found.push(message))
    return found
  }
  const changed = (changes: Partial<InvoiceDocument>) => {
    const invoice = invoiceOf(rows)
    return { ...invoice, document: { ...invoice.document, ...changes } }
  }

  it('checks the lines, the totals and the number of its rows', () => {
    assert.deepEqual(wrongIn(invoiceOf(rows)), [])
    assert.match(wrongIn(changed({ ledger_rows: 2 })).join(), /^its row count is 2, but should be 1$/)
    for (const name of ['subtotal', 'gst', 'total'] as const) {
      assert.match(wrongIn(changed({ [name]: '9.99' })).join(), new RegExp(`^its ${name} is 9.99, but should be 0.00$`))
    }
    const [line] = invoiceOf(rows).document.lines
    assert.match(wrongIn(changed({ lines: [] })).join(), /^its lines add up to/)
    for (const change of [
      { quantity: '11' },
      { rate: '2.00' },
      { amount: '1.00' },
      { model: 'n' },
      { price_versions: [2] },
    ]) {
      assert.match(wrongIn(changed({ lines: [{ ...line!, ...change }] })).join(), /^its lines add up to/)
    }
    assert.deepEqual(wrongIn(changed({ lines: [{ ...line!, description: 'other words' }] })), [])
    assert.match(wrongIn(invoiceOf(rows), []).join(), /its lines add up to.*its row count is 1, but should be 0/)
  })

  it('checks its number and its month', () => {
    for (const changes of [{ periodFrom: 1 }, { periodTo: 1 }, { period: 'x' }]) {
      assert.deepEqual(wrongIn(invoiceOf(rows, changes)), ['its period or number differs from its document'])
    }
    assert.deepEqual(wrongIn(changed({ number: 'INV-9' })), ['its period or number differs from its document'])
    assert.match(wrongIn(invoiceOf(rows), [{ ...sums[0]!, priceVersion: 9 }]).join(), /9/)
  })

  it('checks that it adjusts or replaces an invoice of its month, by no more than that invoice’s amount', () => {
    const invoice = invoiceOf(rows)
    const total = invoice.document.lines_total
    const changedTo = (it: IssuedInvoice, changes: Partial<InvoiceDocument>): IssuedInvoice => ({
      ...it,
      document: { ...it.document, ...changes },
    })
    const note = (changes: Partial<InvoiceDocument> = {}) =>
      changedTo(invoiceOf([], { kind: 'adjustment_note', number: 'ADJ-1' }), {
        adjusts: invoice.number,
        lines_total: `-${total}`,
        ...changes,
      })
    const wrong = (...all: readonly IssuedInvoice[]) => {
      const found: string[] = []
      checkReferences(all, (number, message) => void found.push(`${number}: ${message}`))
      return found.join()
    }
    assert.equal(wrong(invoice, note()), '')
    assert.match(
      wrong(invoice, note({ adjusts: 'INV-7' })),
      /^ADJ-1: it adjusts INV-7, which is no invoice of 2026-10$/,
    )
    assert.match(wrong(invoice, { ...note(), period: '2026-09' }), /^ADJ-1: it adjusts/)
    assert.match(wrong(invoice, note({ buyer: { name: 'B', abn: null, address: '' } })), /^ADJ-1: its buyer is not/)
    assert.match(wrong(invoice, note({ lines_total: '-1.00' })), /^INV-000001: it is credited by 0\.\d+ more than/)
    const again = changedTo(invoiceOf(rows, { number: 'INV-2' }), { replaces: invoice.number })
    assert.equal(wrong(invoice, note(), again), '')
    assert.match(wrong(invoice, again), /^INV-2: it replaces INV-000001, of which 0\.00001 is not credited$/)
    assert.match(wrong(again), /^INV-2: it replaces INV-000001, which is no invoice of 2026-10$/)
    assert.match(wrong(invoice, note(), { ...again, period: '2026-09' }), /^INV-2: it replaces INV-000001, which is no/)
  })

  it('checks that it was issued as previewed', () => {
    const { document } = invoiceOf(rows)
    const id = previewIdOf(document)
    assert.match(id, /^[0-9a-f]{32}$/)
    assert.notEqual(previewIdOf({ ...document, total: '1.00' }), id)
    requirePreviewed(id, document)
    assert.throws(() => requirePreviewed(id, { ...document, total: '1.00' }), { code: 'conflict', param: 'preview_id' })
  })
})

describe('the row of reserved capacity', () => {
  it('is settled in the last millisecond of its month, for the time in which it was reserved', () => {
    const lane = { id: 5, model: 'm@acme', workspaceId: null, prices: { per_hour: '2' }, effectiveFrom: month.from }
    const [it, ...more] = capacityRows([lane], workspace, month, month.to + 5)
    assert.deepEqual(more, [])
    assert.deepEqual(
      [it?.requestId, it?.model, it?.lane, it?.startedAt, it?.settledAt, it?.capacityMs, it?.durationMs, it?.keyId],
      ['capacity:5:2026-10', 'm', 'm@acme', month.from, month.to - 1, month.to - month.from, month.to - month.from, ''],
    )
    assert.deepEqual(capacityRows([lane], workspace, month, month.from), [])
    assert.deepEqual(capacityRows([lane], { ...workspace, name: 'other' }, month, month.to), [])
  })
})
