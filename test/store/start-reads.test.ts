import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { describe, it } from 'node:test'
import { openAccounts } from '../../src/workspaces/accounts.ts'
import { openPriceBook } from '../../src/billing/prices/price-book.ts'
import { memoryChanges } from '../../src/cluster/changes/memory.ts'
import { formatKey } from '../../src/workspaces/keys/api-key.ts'
import { testBooks } from '../support/books.ts'
import { watchedStore } from '../support/watched-store.ts'
import { noLimits } from '../support/key-limits.ts'

const keyOf = (number: number): string => formatKey(Buffer.alloc(32, number))

describe('a start', () => {
  it('reads workspaces and prices but no key, however many there are; a key is read when it is first used', async (t) => {
    const books = await testBooks(1000)
    t.after(() => books.close())
    const { id: workspaceId } = await books.workspace('acme')
    for (let number = 0; number < 200; number++) {
      const times = { createdAt: number, expiresAt: null, revokedAt: null, ...noLimits }
      const secret = hash('sha256', keyOf(number))
      await books.store.createKey({
        id: `key_${number}`,
        workspaceId,
        hash: secret,
        ending: null,
        name: null,
        ...times,
      })
    }
    await books.price('meta/a', { per_image: '0.04' }, 5)
    const { store, transactions } = await watchedStore(t, books.dataDir)
    const clock = { now: () => 1000, monotonic: () => 0 }
    const accounts = await openAccounts(store, clock, memoryChanges())
    await openPriceBook(store, clock, memoryChanges())
    const rows = (): number => transactions.reduce((sum, { read }) => sum + read, 0)
    // The workspace, its price, and the number of the last change.
    assert.equal(rows(), 3)

    assert.equal((await accounts.authenticate(keyOf(7)))?.keyId, 'key_7')
    assert.equal(rows(), 4)
    assert.equal((await accounts.authenticate(keyOf(7)))?.keyId, 'key_7')
    assert.equal(rows(), 4, 'a key in use is in memory')
  })

  it('looks up no mistyped key in the database', async (t) => {
    const books = await testBooks(1000)
    t.after(() => books.close())
    const { store, transactions } = await watchedStore(t, books.dataDir)
    const accounts = await openAccounts(store, { now: () => 1000, monotonic: () => 0 }, memoryChanges())
    const before = transactions.length
    assert.equal(await accounts.authenticate(keyOf(1).replace('weir_', 'weir_x').slice(0, 54)), undefined)
    assert.equal(transactions.length, before)
    assert.equal(await accounts.authenticate(keyOf(1)), undefined)
    assert.equal(await accounts.authenticate(keyOf(1)), undefined, 'no key matches, and that is remembered')
    assert.equal(transactions.length, before + 1)
  })
})
