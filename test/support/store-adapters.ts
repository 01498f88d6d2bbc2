import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Store } from '../../src/ports/store.ts'
import { openStore } from '../../src/store/open.ts'

/** A kind of database that the store can have behind it. */
export interface StoreAdapter {
  readonly name: string
  /** A new, empty database. */
  create(): TestDatabase
}

export interface TestDatabase {
  /** Opens it once more, as another process would; without an owner, as the one that it belongs to. */
  open(owner?: string): Promise<Store>
  /** Keeps another writer's transaction open until the returned function is called. */
  holdWriter(): () => void
  /** Keeps a reader's transaction open, which has seen what is there now. */
  holdReader(): () => void
  /** Closes every store, and removes the data. */
  remove(): Promise<void>
}

const sqlite: StoreAdapter = {
  name: 'SQLite',
  create() {
    const dataDir = mkdtempSync(join(tmpdir(), 'weir-store-'))
    const stores: Store[] = []
    const hold = (...statements: string[]) => {
      const database = new DatabaseSync(join(dataDir, 'weir.db'))
      for (const sql of statements) database.exec(sql)
      return () => database.close()
    }
    return {
      async open(owner) {
        const store = await openStore({ dataDir, exclusive: false, ...(owner === undefined ? {} : { owner }) })
        stores.push(store)
        return store
      },
      holdWriter: () => hold('BEGIN IMMEDIATE'),
      holdReader: () => hold('BEGIN', 'SELECT count(*) FROM ledger'),
      async remove() {
        await Promise.all(stores.map((store) => store.close()))
        rmSync(dataDir, { recursive: true, force: true })
      },
    }
  },
}

export const storeAdapters: readonly StoreAdapter[] = [sqlite]
