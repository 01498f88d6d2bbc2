import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { eachPage } from '../../src/billing/usage/usage-export.ts'
import { reconcileLedger } from '../../src/ledger/reconcile/reconcile.ts'
import type { LedgerRow } from '../../src/ledger/rows.ts'
import { formatCents, parseAud } from '../../src/shared/money/money.ts'
import { seededRandom } from '../../src/shared/seeded-random.ts'
import { parseMonth } from '../../src/shared/money/sydney-time.ts'
import type { Workspace } from '../../src/workspaces/workspace.ts'
import { testBooks, type TestBooks } from '../support/books.ts'
import { runLength } from '../support/long-run.ts'

/** A year of three workspaces in the real store, with price changes, workspace prices and reversed rows. */

const ROWS = runLength(4000, 30_000)
const random = seededRandom(2026)
const whole = (below: number): number => Math.floor(random() * below)
const months = Array.from({ length: 12 }, (_, index) => parseMonth(`2028-${String(index + 1).padStart(2, '0')}`)!)
const [first, last] = [months[0]!, months[11]!]

let books: TestBooks
const workspaces: Workspace[] = []

before(async () => {
  books = await testBooks(first.from)
  for (const name of ['one', 'two', 'three']) workspaces.push(await books.workspace(name))
  const prices: { model: string; id: number; from: number; workspaceId: string | undefined }[] = []
  for (let version = 0; version < 40; version++) {
    const model = `meta/model-${version % 4}`
    const from = version < 4 ? first.from : first.from + whole(last.to - first.from)
    const workspaceId = version >= 4 && version % 3 === 0 ? workspaces[whole(3)]!.id : undefined
    const list = {
      input_per_million: `${whole(100)}.${100_000 + whole(900_000)}`,
      output_per_million: '0.000001',
      per_audio_minute: `0.${1 + whole(9)}00000000001`,
      per_image: `0.0${whole(9)}`,
      ...(version % 2 ? { cached_input_per_million: '0.05' } : {}),
    }
    prices.push({ model, id: await books.price(model, list, from, workspaceId), from, workspaceId })
  }
  const rows: LedgerRow[] = []
  for (let index = 0; index < ROWS; index++) {
    // Every tenth row is at the first or last millisecond of a month.
    const month = months[whole(12)]!
    const at = index % 10 > 0 ? first.from + whole(last.to - first.from) : index % 20 ? month.from : month.to - 1
    const workspace = workspaces[whole(3)]!
    const fitting = prices.filter(
      (it) => it.from <= at && (it.workspaceId === undefined || it.workspaceId === workspace.id),
    )
    const price = fitting[whole(fitting.length)]!
    const inputTokens = whole(100_000)
    const usage = {
      inputTokens,
      cachedInputTokens: whole(inputTokens),
      outputTokens: whole(5000),
      images: whole(2),
      audioMs: whole(90_000),
    }
    rows.push(await books.row(workspace, price.model, price.id, at, usage))
  }
  for (let from = 0; from < ROWS; from += 2000) await books.settle(rows.slice(from, from + 2000))
  // Rows written twice must count once.
  await books.settle(rows.slice(0, 2000))
  books.now = last.to
})
after(() => books.close())

describe('a random year', () => {
  it('is invoiced to the pico-dollar, each row once, and reconciles', async () => {
    let exact = 0n
    let inInvoices = 0
    for (const month of months) {
      for (const workspace of workspaces) {
        const {
          lines_total: total,
          ledger_rows: rows,
          subtotal,
          gst,
          total: printed,
        } = await books.invoicing.issue(workspace, month)
        exact += parseAud(total)!
        inInvoices += rows
        const cents = (text: string): bigint => BigInt(text.replace('.', ''))
        assert.equal(formatCents((cents(subtotal) * 10n + 50n) / 100n), gst)
        assert.equal(cents(subtotal) + cents(gst), cents(printed))
      }
    }
    let amount = 0n
    for (const { id } of workspaces) {
      for await (const page of eachPage(books.store, { workspaceId: id, from: 0, to: Infinity, limit: 0 })) {
        for (const row of page) amount += row.amount
      }
    }
    assert.deepEqual([exact, inInvoices], [amount, ROWS])
    const proof = await reconcileLedger(books.store)
    assert.deepEqual([proof.problems, proof.rows, proof.invoices, proof.amount], [[], ROWS, 36, amount])
  })

  it('has stored sums that match the rows over any range of hours', async () => {
    const [{ id: workspaceId }] = workspaces as [Workspace]
    const rows: LedgerRow[] = []
    for await (const page of eachPage(books.store, { workspaceId, from: 0, to: Infinity, limit: 0 })) rows.push(...page)
    for (let query = 0; query < 100; query++) {
      const hour = (): number => first.from + whole(366 * 24) * 3_600_000
      const from = hour()
      const to = query % 2 ? hour() : from + whole(60) * 3_600_000
      const expected = rows.filter(({ settledAt }) => settledAt >= from && settledAt < to)
      const { amount, rows: count } = await books.store.usageTotal({ workspaceId, from, to, groupBy: 'model' })
      assert.deepEqual([count, amount], [expected.length, expected.reduce((sum, row) => sum + row.amount, 0n)])
    }
  })

  it('still reconciles after rows are credited', async () => {
    for (let note = 0; note < 10; note++) {
      const workspace = workspaces[whole(3)]!
      const month = months[note]!
      const rows = await books.store.usage({
        workspaceId: workspace.id,
        from: month.from,
        to: month.to,
        limit: 500,
        creditNote: '',
      })
      const some = rows.filter(() => random() < 0.2).map(({ requestId }) => requestId)
      const credit = await books.invoicing.credit(workspace, month, some, 'A test')
      assert.equal(credit.ledger_rows, some.length)
    }
    const proof = await reconcileLedger(books.store)
    assert.deepEqual([proof.problems, proof.invoices], [[], 46])
  })
})
