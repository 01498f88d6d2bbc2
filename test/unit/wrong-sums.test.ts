import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { reconcileBooks } from '../../src/billing/reconcile.ts'
import { testBooks } from '../support/books.ts'

describe('a sum that somebody has changed', () => {
  for (const table of ['usage_hours', 'usage_days']) {
    it(`is found in ${table}`, async (t) => {
      const books = await testBooks(Date.UTC(2026, 6, 15))
      t.after(() => books.close())
      const workspace = await books.workspace('w')
      const version = await books.price('m', { input_per_million: '1' }, 0)
      await books.settle([await books.row(workspace, 'm', version, books.now, { inputTokens: 100 })])
      assert.deepEqual((await reconcileBooks(books.store)).problems, [])

      const database = new DatabaseSync(join(books.dataDir, 'weir.db'))
      database.exec(`UPDATE ${table} SET input_tokens = input_tokens + 1`)
      database.close()
      const { problems } = await reconcileBooks(books.store)
      assert.deepEqual(
        problems.map(({ check, subject }) => [check, subject.split(' ', 1)[0]]),
        [['sums', table]],
      )
    })
  }
})
