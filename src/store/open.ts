import { randomUUID } from 'node:crypto'
import type { Store } from '../ports/store.ts'
import { accountQueries } from './queries/accounts.ts'
import { arrivalQueries } from './queries/arrivals.ts'
import { invoiceQueries } from './queries/invoices.ts'
import { ledgerQueries } from './queries/ledger.ts'
import { usageQueries } from './queries/usage.ts'
import { openSqlite } from './sqlite/client.ts'

export interface StoreOptions {
  readonly dataDir: string
  /** Whether this is the service of the data directory, of which there is one at a time. Everybody else shares it. */
  readonly exclusive: boolean
  /** Whose intents this process writes and recovers. Those of the data directory, unless it is said. */
  readonly owner?: string
}

/** Opens a store. The only place that chooses which database is behind it. */
export async function openStore({ dataDir, exclusive, owner }: StoreOptions): Promise<Store> {
  const database = await openSqlite({ dataDir, exclusive })
  return {
    ...accountQueries(database),
    ...ledgerQueries(database, { owner: owner ?? database.directoryId, incarnation: randomUUID() }),
    ...usageQueries(database),
    ...invoiceQueries(database),
    ...arrivalQueries(database),
    close: () => database.close(),
  }
}
