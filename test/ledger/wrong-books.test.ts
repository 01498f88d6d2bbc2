import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { reconcileLedger } from '../../src/ledger/reconcile/reconcile.ts'
import { reconciliationRoute } from '../../src/ledger/reconcile/routes/reconciliation.ts'
import { testBooks } from '../support/books.ts'
import { askDocumented } from '../support/route-answer.ts'

describe('a sum that was changed by hand', () => {
  for (const table of ['usage_hours', 'usage_days']) {
    it(`is found in ${table}`, async (t) => {
      const books = await testBooks(Date.UTC(2026, 6, 15))
      t.after(() => books.close())
      const workspace = await books.workspace('w')
      const version = await books.price('m', { input_per_million: '1' }, 0)
      await books.settle([await books.row(workspace, 'm', version, books.now, { inputTokens: 100 })])
      assert.deepEqual((await reconcileLedger(books.store)).problems, [])

      const database = new DatabaseSync(join(books.dataDir, 'weir.db'))
      database.exec(`UPDATE ${table} SET input_tokens = input_tokens + 1`)
      database.close()
      const { problems } = await reconcileLedger(books.store)
      assert.deepEqual(
        problems.map(({ check, subject }) => [check, subject.split(' ', 1)[0]]),
        [['sums', table]],
      )
    })
  }
})

describe('a row at a price that does not apply to it', () => {
  it('is found: of another workspace, of another model, or not in effect yet', async (t) => {
    const books = await testBooks(Date.UTC(2026, 6, 15))
    t.after(() => books.close())
    const [one, two] = [await books.workspace('one'), await books.workspace('two')]
    const prices = { input_per_million: '1' }
    const right = await books.price('m', prices, 0)
    const ofTwo = await books.price('m', prices, 0, two.id)
    const ofOther = await books.price('other', prices, 0)
    const later = await books.price('m', prices, books.now + 1)
    const rows = []
    for (const version of [right, ofTwo, ofOther, later]) {
      rows.push(await books.row(one, 'm', version, books.now, { inputTokens: 100 }))
    }
    rows.push(await books.row(two, 'm', ofTwo, books.now, { inputTokens: 100 }))
    await books.settle(rows)
    const { problems } = await reconcileLedger(books.store)
    const wrong = rows.slice(1, 4).map(({ requestId }) => ['price_version', requestId])
    assert.deepEqual(
      problems.map(({ check, subject }) => [check, subject]),
      wrong,
    )
    const reported: number[] = []
    const telemetry = { reconciled: (...counted: readonly number[]) => void reported.push(...counted) }
    const clock = { now: () => books.now, monotonic: () => 0 }
    const route = reconciliationRoute({ store: books.store, clock, telemetry })
    const { body } = await askDocumented([route], 'GET /admin/v1/reconcile')
    assert.deepEqual([body.object, body.fits, body.workspaces, body.rows], ['reconciliation', false, 2, 5])
    assert.deepEqual(
      body.problems.map((it: { check: string; subject: string }) => [it.check, it.subject]),
      wrong,
    )
    assert.deepEqual(reported, [3, books.now])
  })
})
