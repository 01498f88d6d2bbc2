import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { parseMonth } from '../../src/shared/money/sydney-time.ts'
import { testBooks } from '../support/books.ts'

const month = parseMonth('2026-07')!

/** A workspace with two rows in July, in August. */
async function stage(t: TestContext) {
  const books = await testBooks(month.to + 1)
  t.after(() => books.close())
  const workspace = await books.workspace('acme')
  const version = await books.price('m', { input_per_million: '1000' }, 0)
  const rows = [
    await books.row(workspace, 'm', version, month.from, { inputTokens: 1000 }),
    await books.row(workspace, 'm', version, month.from + 1, { inputTokens: 2000 }),
  ] as const
  await books.settle(rows)
  return { books, workspace, ids: rows.map(({ requestId }) => requestId) as [string, string] }
}

describe('a wrong row', () => {
  it('is reversed as long as it is not invoiced, and only once', async (t) => {
    const { books, workspace, ids } = await stage(t)
    await books.invoicing.correct(ids[0], 'wrong')
    await assert.rejects(books.invoicing.correct(ids[0], 'wrong'), {
      code: 'conflict',
      message: /already been reversed/,
    })
    assert.equal((await books.invoicing.preview(workspace, month)).subtotal, '2.00')
  })

  it('is credited once it is invoiced, and no longer reversed', async (t) => {
    const { books, workspace, ids } = await stage(t)
    await books.invoicing.issue(workspace, month)
    await assert.rejects(books.invoicing.correct(ids[0], 'wrong'), { code: 'conflict', message: /INV-000001/ })
    const period = { from: 0, to: Number.MAX_SAFE_INTEGER, groupBy: 'model' as const }
    const { rows } = await books.store.usageTotal({ workspaceId: workspace.id, ...period })
    assert.equal(rows, 2)
  })

  it('belongs to the month of its settlement, not of its start', async (t) => {
    const { books, workspace } = await stage(t)
    const version = await books.price('other', { input_per_million: '1000' }, 0)
    const begun = async (startedAt: number, settledAt: number) => ({
      ...(await books.row(workspace, 'other', version, settledAt, { inputTokens: 3000 })),
      startedAt,
    })
    const rows = [await begun(month.from - 1, month.from), await begun(month.to - 1, month.to)] as const
    await books.settle(rows)
    await books.invoicing.issue(workspace, month)
    await assert.rejects(books.invoicing.correct(rows[0].requestId, 'wrong'), { message: /INV-000001/ })
    await books.invoicing.correct(rows[1].requestId, 'wrong')
    const august = { workspaceId: workspace.id, from: month.to, to: parseMonth('2026-08')!.to }
    const reversed = await books.store.usage({ ...august, limit: 9 })
    assert.deepEqual(
      reversed.map(({ requestId, amount, settledAt }) => [requestId, amount, settledAt]),
      [
        [`correction:${rows[1].requestId}`, -rows[1].amount, month.to],
        [rows[1].requestId, rows[1].amount, month.to],
      ],
    )
  })

  it('may be named twice in one credit, which reverses it once', async (t) => {
    const { books, workspace, ids } = await stage(t)
    await books.invoicing.issue(workspace, month)
    const note = await books.invoicing.credit(workspace, month, [ids[1], ids[1]], 'wrong')
    assert.deepEqual([note.subtotal, note.ledger_rows], ['-2.00', 1])
    await assert.rejects(books.invoicing.credit(workspace, month, [ids[1]], 'wrong'), { code: 'not_found' })
    assert.equal((await books.invoicing.credit(workspace, month, null, 'wrong')).subtotal, '-1.00')
    await assert.rejects(books.invoicing.credit(workspace, month, null, 'wrong'), { code: 'conflict' })
  })
})
