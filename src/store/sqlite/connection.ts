import type { DatabaseSync } from 'node:sqlite'
import type { Row, Statement, Transaction } from '../database.ts'
import { openDatabase } from './open-database.ts'
import { statementCache } from './statement-cache.ts'

/** A connection to the database of a data directory. Its calls are synchronous, and writes end with an fsync. */
export interface SqliteConnection {
  /** Stays the same for a directory, and differs between directories. */
  readonly directoryId: string
  /** Throws when the transaction had no effect. */
  transact(transaction: Transaction): readonly (readonly Row[])[]
  close(): void
}

export interface ConnectionOptions {
  readonly dataDir: string
  /** Whether this process holds the data directory's service lock. */
  readonly exclusive: boolean
}

const PREPARED_MAX = 200

export function openConnection(options: ConnectionOptions): SqliteConnection {
  const database = openDatabase(options.dataDir, options)
  const prepared = statementCache(PREPARED_MAX, (sql) => database.prepare(sql))

  function run({ sql, runs, returns }: Statement): readonly Row[] {
    const compiled = prepared.get(sql)
    if (returns === 'rows') {
      compiled.setReadBigInts(true)
      return runs.flatMap((values) => compiled.all(...values))
    }
    for (const values of runs) compiled.run(...values)
    return []
  }

  return {
    directoryId: idOf(database),
    transact({ access, statements }) {
      try {
        // A write takes SQLite's single write lock at once, which covers every lock that it names. A read does not need it.
        database.exec(access === 'read' ? 'BEGIN' : 'BEGIN IMMEDIATE')
        const results = statements.map(run)
        database.exec('COMMIT')
        return results
      } catch (error) {
        if (database.isTransaction) database.exec('ROLLBACK')
        throw error
      }
    },
    close: () => database.close(),
  }
}

function idOf(database: DatabaseSync): string {
  return String(database.prepare('SELECT id FROM data_directory').get()?.['id'])
}
