import { RefusedWrite } from '../../shared/refused-write.ts'
import { sqliteDialect } from '../fragments.ts'
import type { SqliteDatabase } from './client.ts'
import { openConnection, type SqliteConnection, type ConnectionOptions } from './connection.ts'
import { explainSqliteError } from './failures.ts'
import { lockForService } from './open-database.ts'
import { refusesValues } from './refused-values.ts'

/** The SQLite database of a data directory, for a thread or a command that may block. */
export function openSqliteHere(options: ConnectionOptions): SqliteDatabase {
  const lock = options.exclusive ? lockForService(options.dataDir) : undefined
  let connection: SqliteConnection
  let isClosed = false
  try {
    connection = openConnection(options)
  } catch (error) {
    lock?.close()
    throw error
  }
  return {
    dialect: sqliteDialect,
    directoryId: connection.directoryId,
    isUp: () => true,
    async transact(transaction) {
      try {
        return connection.transact(transaction)
      } catch (error) {
        if (refusesValues(error)) throw new RefusedWrite((error as Error).message, { cause: error })
        throw explainSqliteError(error, options.dataDir)
      }
    },
    async close() {
      if (isClosed) return
      isClosed = true
      connection.close()
      lock?.close()
    },
  }
}
