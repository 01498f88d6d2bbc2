import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Client } from 'pg'
import type { Store } from '../../src/store/store.ts'
import { openStore } from '../../src/store/open.ts'
import { lockCall } from '../../src/store/postgres/locks.ts'
import { limitWaits, startPgBouncer, withoutPgBouncer } from './pgbouncer.ts'
import { startPostgres } from './postgres-server.ts'

/** A kind of database that the store can have behind it. */
export interface StoreAdapter {
  readonly name: string
  /** A new, empty database. */
  create(): Promise<TestDatabase>
}

export interface TestDatabase {
  /** Opens it once more, as another process would; without an owner, as the one that it belongs to. */
  open(owner?: string): Promise<Store>
  /** Keeps another writer's transaction open until the returned function is called. */
  holdWriter(): Promise<() => Promise<void>>
  /** Keeps a reader's transaction open, which has seen what is there now. */
  holdReader(): Promise<() => Promise<void>>
  /** Closes every store, and removes the data. */
  remove(): Promise<void>
}

const sqlite: StoreAdapter = {
  name: 'SQLite',
  async create() {
    const dataDir = mkdtempSync(join(tmpdir(), 'weir-store-'))
    const stores: Store[] = []
    const hold = async (...statements: string[]) => {
      const database = new DatabaseSync(join(dataDir, 'weir.db'))
      for (const sql of statements) database.exec(sql)
      return async () => database.close()
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

const postgres: StoreAdapter = {
  name: 'PostgreSQL',
  async create() {
    const server = await startPostgres()
    return postgresDatabase(await server.createDatabase(), server.remove)
  },
}

/** Its clients share few connections, and their transactions take turns. */
const pgBouncer: StoreAdapter = {
  name: 'PostgreSQL behind PgBouncer',
  async create() {
    const server = await startPostgres()
    const pooler = await startPgBouncer(server, { mode: 'transaction', connections: 4 })
    const databaseUrl = await limitWaits(await server.createDatabase())
    return postgresDatabase(pooler.behind(databaseUrl), async () => {
      await pooler.remove()
      await server.remove()
    })
  },
}

function postgresDatabase(databaseUrl: string, removeServers: () => Promise<void>): TestDatabase {
  const dataDir = mkdtempSync(join(tmpdir(), 'weir-store-'))
  const stores: Store[] = []
  const hold = async (...statements: string[]) => {
    const client = new Client(databaseUrl)
    await client.connect()
    for (const sql of statements) await client.query(sql)
    return () => client.end()
  }
  return {
    async open(owner = 'owner') {
      const store = await openStore({ dataDir, databaseUrl, exclusive: false, owner })
      stores.push(store)
      return store
    },
    holdWriter: () => hold('BEGIN', lockCall('invoices'), lockCall('keys'), lockCall('prices'), lockCall('usage_sums')),
    holdReader: () => hold('BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT count(*) FROM ledger'),
    async remove() {
      await Promise.all(stores.map((store) => store.close()))
      await removeServers()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

export const storeAdapters: readonly StoreAdapter[] = [sqlite, postgres]
/** Where PgBouncer is installed. */
export const pooledAdapters: readonly StoreAdapter[] = withoutPgBouncer === false ? [pgBouncer] : []
