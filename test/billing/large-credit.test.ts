import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { InvoicingStore } from '../../src/billing/invoices/invoice-drafts.ts'
import { openInvoicing, type Invoicing } from '../../src/billing/invoices/invoices.ts'
import { reconcileLedger } from '../../src/ledger/reconcile/reconcile.ts'
import { parseMonth } from '../../src/shared/money/sydney-time.ts'
import type { Workspace } from '../../src/workspaces/workspace.ts'
import { seller, testBooks, type TestBooks } from '../support/books.ts'
import { watchedStore, type WatchedTransaction } from '../support/watched-store.ts'

const october = parseMonth('2026-10')!
const november = parseMonth('2026-11')!
const clock = (books: TestBooks) => ({ now: () => books.now, monotonic: () => performance.now() })

/** More would make other rows wait for too long. */
const MOST_ROWS_AT_A_TIME = 500

interface InvoicedMonth {
  readonly books: TestBooks
  readonly acme: Workspace
  readonly version: number
}

/** October of a workspace, with this many rows, invoiced. */
async function invoicedMonth(t: TestContext, rows: number, spacingMs = 60): Promise<InvoicedMonth> {
  const books = await testBooks(parseMonth('2026-09')!.from)
  t.after(() => books.close())
  const acme = await books.workspace('acme')
  const version = await books.price('meta/a', { input_per_million: '0.20' }, books.now)
  for (let written = 0; written < rows; written += 2000) {
    const count = Math.min(2000, rows - written)
    const batch = Array.from({ length: count }, (_, index) =>
      books.row(acme, 'meta/a', version, october.from + (written + index) * spacingMs, { inputTokens: index + 1 }),
    )
    await books.settle(await Promise.all(batch))
  }
  books.now = november.from + 1000
  await books.invoicing.issue(acme, october)
  return { books, acme, version }
}

/** How many rows each transaction that wrote has added. */
const addedBy = (transactions: readonly WatchedTransaction[]): number[] =>
  transactions.filter(({ access }) => access === 'write').map(({ added }) => added)

const usedBy = (books: TestBooks, { id }: Workspace) =>
  books.store.usageTotal({ workspaceId: id, from: 0, to: Number.MAX_SAFE_INTEGER, groupBy: 'model' })

describe('a credit of a large month', () => {
  it('adds its rows a few at a time, and other rows are written in between', async (t) => {
    const { books, acme, version } = await invoicedMonth(t, 4000)
    const { store, transactions } = await watchedStore(t, books.dataDir)
    const crediting = { isOver: false }
    let written = 0
    const writing = (async () => {
      while (!crediting.isOver) {
        await books.settle([await books.row(acme, 'meta/a', version, books.now, { inputTokens: 1 })])
        written++
        await sleep(1)
      }
    })()
    const note = await openInvoicing(store, clock(books), seller).credit(acme, october, null, 'All of it.')
    crediting.isOver = true
    await writing

    const added = addedBy(transactions)
    assert.equal(note.ledger_rows, 4000)
    assert.equal(
      added.reduce((sum, rows) => sum + rows, 0),
      4000,
    )
    assert.ok(Math.max(...added) <= MOST_ROWS_AT_A_TIME, `${Math.max(...added)} rows in one transaction`)
    assert.ok(written >= added.length / 2, `only ${written} rows were written between ${added.length} transactions`)
    const proof = await reconcileLedger(books.store)
    assert.deepEqual([proof.problems, proof.rows], [[], 8000 + written])
  })

  it('has every row once, although many of them were settled in the same millisecond', async (t) => {
    const { books, acme } = await invoicedMonth(t, 450, 0)
    const note = await openInvoicing(books.store, clock(books), seller).credit(acme, october, null, 'All of it.')
    assert.equal(note.ledger_rows, 450)
    assert.equal((await usedBy(books, acme)).amount, 0n)
  })

  it('adds the rows of a long list in the same way', async (t) => {
    const { books, acme } = await invoicedMonth(t, 3000)
    const { store, transactions } = await watchedStore(t, books.dataDir)
    const rows = await books.store.usage({ workspaceId: acme.id, from: 0, to: october.to, limit: 3000 })
    const ids = rows.map(({ requestId }) => requestId).filter((_, index) => index % 2 === 0)
    const note = await openInvoicing(store, clock(books), seller).credit(acme, october, ids.toReversed(), 'Half.')
    assert.equal(note.ledger_rows, 1500)
    const added = addedBy(transactions)
    assert.ok(added.length > 3 && Math.max(...added) <= MOST_ROWS_AT_A_TIME)
    assert.deepEqual((await reconcileLedger(books.store)).problems, [])
    const rest = await books.invoicing.credit(acme, october, null, 'The rest.')
    assert.deepEqual([rest.number, rest.ledger_rows], ['ADJ-000002', 1500])
    assert.equal((await usedBy(books, acme)).amount, 0n)
  })
})

describe('a credit that was interrupted', () => {
  /** Begins a credit whose connection fails after some transactions, as when its process is killed. */
  async function cutOff(t: TestContext, after: number): Promise<InvoicedMonth & { again: Invoicing }> {
    const month = await invoicedMonth(t, 1000)
    const { books, acme } = month
    const { store } = await watchedStore(t, books.dataDir)
    let left = after
    const failing: InvoicingStore = {
      ...store,
      continueNote(unfinished, rowsMax) {
        if (left-- === 0) return Promise.reject(new Error('killed'))
        return store.continueNote(unfinished, rowsMax)
      },
    }
    const credit = openInvoicing(failing, clock(books), seller).credit(acme, october, null, 'All of it.')
    await assert.rejects(credit, /killed/)
    return { ...month, again: openInvoicing(store, clock(books), seller) }
  }

  for (const after of [0, 2, 5]) {
    it(`leaves a ledger that reconciles and does not show the credit, after ${after} steps`, async (t) => {
      const { books, acme } = await cutOff(t, after)
      const { problems, rows, invoices } = await reconcileLedger(books.store)
      assert.deepEqual([problems, rows, invoices], [[], 1000, 1])
      assert.equal((await usedBy(books, acme)).rows, 1000)
      assert.deepEqual(
        (await books.invoicing.list()).map(({ number }) => number),
        ['INV-000001'],
      )
    })
  }

  it('is finished when it is requested again, under the same number', async (t) => {
    const { books, acme, again } = await cutOff(t, 2)
    const note = await again.credit(acme, october, null, 'All of it.')
    assert.deepEqual([note.number, note.ledger_rows, note.reason], ['ADJ-000001', 1000, 'All of it.'])
    assert.deepEqual(await books.invoicing.byNumber('ADJ-000001'), note)
    const { amount } = await usedBy(books, acme)
    assert.equal(amount, 0n)
    await assert.rejects(again.credit(acme, october, null, 'All of it.'), /already been credited/)
    assert.deepEqual((await reconcileLedger(books.store)).problems, [])
  })

  for (const amount of [null, '0.10']) {
    it(`is finished before the next credit of ${amount ?? 'everything'}, so that no number is missing`, async (t) => {
      const { books, again } = await cutOff(t, 2)
      const other = await books.workspace('other')
      const version = await books.price('meta/b', { input_per_million: '0.20' }, october.from)
      books.now = parseMonth('2026-12')!.from
      await books.settle([await books.row(other, 'meta/b', version, november.from + 5000, { inputTokens: 1_000_000 })])
      await again.issue(other, november)
      const note = await (amount === null
        ? again.credit(other, november, null, 'Goodwill.')
        : again.creditAmount(other, november, amount, 'Goodwill.'))
      assert.equal(note.number, 'ADJ-000002')
      assert.deepEqual((await again.list()).map(({ number, workspace }) => `${number} ${workspace}`).toSorted(), [
        'ADJ-000001 acme',
        'ADJ-000002 other',
        'INV-000001 acme',
        'INV-000002 other',
      ])
      assert.deepEqual((await reconcileLedger(books.store)).problems, [])
    })
  }

  it('is finished before a credit of a free amount, which is given on what is left', async (t) => {
    const { books, acme, again } = await cutOff(t, 2)
    await assert.rejects(again.creditAmount(acme, october, '0.01', 'Goodwill.'), /nothing is left of it/)
    assert.equal((await books.invoicing.byNumber('ADJ-000001')).ledger_rows, 1000)
  })

  it('is finished when the service starts', async (t) => {
    const { books, acme, again } = await cutOff(t, 2)
    await again.finishCredit()
    await again.finishCredit()
    assert.equal((await usedBy(books, acme)).amount, 0n)
    assert.equal((await books.invoicing.byNumber('ADJ-000001')).ledger_rows, 1000)
  })

  it('is finished once, even if several processes try', async (t) => {
    const { books, acme, again } = await cutOff(t, 1)
    const credits = await Promise.all([
      again.credit(acme, october, null, 'All of it.'),
      books.invoicing.credit(acme, october, null, 'All of it.'),
      books.invoicing.finishCredit(),
      again.finishCredit(),
    ])
    assert.deepEqual(credits[0], credits[1])
    assert.deepEqual((await reconcileLedger(books.store)).problems, [])
    assert.equal((await usedBy(books, acme)).rows, 2000)
  })
})

describe('several credits at once', () => {
  it('each get a number, and none is missing', async (t) => {
    const { books, acme } = await invoicedMonth(t, 8)
    const rows = await books.store.usage({ workspaceId: acme.id, from: 0, to: october.to, limit: 8 })
    const notes = await Promise.all(
      rows.map(({ requestId }) => books.invoicing.credit(acme, october, [requestId], `No ${requestId}.`)),
    )
    assert.deepEqual(
      notes.map(({ number }) => String(number)).toSorted(),
      rows.map((_, index) => `ADJ-00000${index + 1}`),
    )
    assert.deepEqual((await reconcileLedger(books.store)).problems, [])
  })
})

describe('a credit during a reconciliation', () => {
  it('is not reported as a discrepancy', async (t) => {
    const { books, acme } = await invoicedMonth(t, 3000)
    let pages = 0
    const store = {
      ...books.store,
      async usage(asked: Parameters<typeof books.store.usage>[0]) {
        const page = await books.store.usage(asked)
        if (pages++ === 0) await books.invoicing.credit(acme, october, null, 'Meanwhile.')
        return page
      },
    }
    const { problems, rows } = await reconcileLedger(store)
    assert.deepEqual([problems, rows], [[], 6000])
  })
})
