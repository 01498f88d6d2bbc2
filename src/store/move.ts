import { existsSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { withoutPassword } from '../shared/address-without-password.ts'
import type { Store } from './store.ts'
import { copyTables, countRows } from './copy-tables.ts'
import { storeOn } from './open.ts'
import { openPostgres } from './postgres/client.ts'
import { databaseFailure } from './postgres/failures.ts'
import { beginMove, finishMove, stateOfMove } from './postgres/moves.ts'
import { openSqliteHere } from './sqlite/in-this-thread.ts'
import { MOVED_DATABASE, refuseMissingDatabase } from './sqlite/open-database.ts'

/** Moves the database of a data directory to PostgreSQL. No service can start on either of them while the move is open. */
export interface Move {
  readonly from: Store
  readonly to: Store
  /** Copies the missing rows, and compares the number of rows of every table. Returns the numbers. */
  copy(progress: (done: number, total: number) => void): Promise<Readonly<Record<string, number>>>
  /** Closes both databases, and renames the one in the data directory. */
  finish(at: number): Promise<void>
  close(): Promise<void>
}

export async function openMove(dataDir: string, databaseUrl: string): Promise<Move> {
  const address = withoutPassword(databaseUrl)
  if (!existsSync(join(dataDir, 'weir.db'))) {
    refuseMissingDatabase(dataDir)
    throw databaseFailure('ERR_DATA_DIR_EMPTY', `there is no ledger in ${dataDir}; --data DIR names another directory`)
  }
  // If the move cannot start, this closes what was opened so far.
  await using opened = new AsyncDisposableStack()
  const sqlite = opened.adopt(openSqliteHere({ dataDir, exclusive: true }), (it) => it.close())
  const postgres = opened.adopt(await openPostgres({ url: databaseUrl, connectionsMax: 2 }), (it) => it.close())
  const { directoryId } = sqlite
  const state = await stateOfMove(postgres, directoryId)
  if (state === 'other') {
    throw databaseFailure('ERR_DATABASE_USED', `${address} already contains a ledger: choose an empty database`)
  }
  if (state === 'new') await beginMove(postgres, directoryId)
  const both = opened.move()
  return {
    from: storeOn(sqlite, directoryId),
    to: storeOn(postgres, ''),
    async copy(progress) {
      const expected = await countRows(sqlite)
      const total = Object.values(expected).reduce((sum, rows) => sum + rows, 0)
      let done = 0
      if (state !== 'finished') await copyTables(sqlite, postgres, (rows) => progress((done += rows), total))
      const found = await countRows(postgres)
      const wrong = Object.keys(expected).find((table) => expected[table] !== found[table])
      if (wrong !== undefined) {
        const numbers = `${expected[wrong]} in ${dataDir}, ${found[wrong]} in ${address}`
        throw databaseFailure('ERR_DATABASE_DIFFERS', `rows of ${wrong}: ${numbers}; use another, empty database`)
      }
      return found
    },
    async finish(at) {
      if (state !== 'finished') await finishMove(postgres, directoryId, at)
      // Close the database before renaming it, so that nothing is left in its write-ahead log. The service lock is in another file.
      await both.disposeAsync()
      renameSync(join(dataDir, 'weir.db'), join(dataDir, MOVED_DATABASE))
    },
    close: () => both.disposeAsync(),
  }
}
