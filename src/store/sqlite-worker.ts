import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { migrations } from './schema.ts'
import { takeServiceLock } from './service-lock.ts'

/**
 * SQLite on a thread of its own: its calls are synchronous and end in an fsync, which has no place on the
 * request path. It knows SQL and transactions and nothing else; the statements come from sqlite.ts.
 */
export interface StoreRequest {
  readonly id: number
  /** Run in one transaction, in this order. */
  readonly statements: readonly Statement[]
}

export interface Statement {
  readonly sql: string
  /** One run for each set of values. */
  readonly rows: readonly (readonly SQLInputValue[])[]
  /** Return what it selects. */
  readonly read?: true
}

export interface StoreReply {
  readonly id: number
  readonly results?: readonly (readonly Record<string, unknown>[])[]
  readonly error?: string
}

/** How long a write waits for another process; less than a caller's last byte waits for the write. */
const BUSY_MS = 4000

const { dataDir, exclusive } = workerData as { dataDir: string; exclusive: boolean }
mkdirSync(dataDir, { recursive: true, mode: 0o700 })
const lock = exclusive ? lockDirectory() : undefined
const database = openDatabase()
const prepared = new Map<string, StatementSync>()

parentPort?.on('message', (request: StoreRequest | 'close') => {
  if (request === 'close') {
    database.close()
    lock?.close()
    parentPort?.close()
    return
  }
  parentPort?.postMessage(answer(request))
})
parentPort?.postMessage({ id: 0 } satisfies StoreReply)

function lockDirectory(): { close(): void } {
  try {
    return takeServiceLock(dataDir)
  } catch (cause) {
    throw refusal('ERR_DATA_DIR_TAKEN', `another service is running on ${dataDir}`, cause)
  }
}

/** What an operator can do something about: it has a code, so that it is told without a stack. */
function refusal(code: string, message: string, cause?: unknown): Error {
  return Object.assign(new Error(message, { cause }), { code })
}

function openDatabase(): DatabaseSync {
  const opened = new DatabaseSync(join(dataDir, 'weir.db'), { timeout: BUSY_MS })
  opened.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON')
  opened.exec('BEGIN IMMEDIATE')
  const version = Number(opened.prepare('PRAGMA user_version').get()?.['user_version'] ?? 0)
  if (version > migrations.length) {
    throw refusal(
      'ERR_DATA_DIR_NEWER',
      `${dataDir} was written by a newer version of Weir (schema ${version}, this one knows ${migrations.length})`,
    )
  }
  for (const step of migrations.slice(version)) opened.exec(step)
  opened.exec(`PRAGMA user_version = ${migrations.length}; COMMIT`)
  return opened
}

function answer(request: StoreRequest): StoreReply {
  try {
    // Whoever only reads leaves the one place of a writer to the service.
    database.exec(request.statements.every(({ sql }) => sql.startsWith('SELECT')) ? 'BEGIN' : 'BEGIN IMMEDIATE')
    const results = request.statements.map(run)
    database.exec('COMMIT')
    return { id: request.id, results }
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    return { id: request.id, error: error instanceof Error ? error.message : String(error) }
  }
}

function run(statement: Statement): readonly Record<string, unknown>[] {
  let compiled = prepared.get(statement.sql)
  if (!compiled) {
    compiled = database.prepare(statement.sql)
    if (statement.read) compiled.setReadBigInts(true)
    prepared.set(statement.sql, compiled)
  }
  if (statement.read) return compiled.all(...(statement.rows[0] ?? []))
  for (const values of statement.rows) compiled.run(...values)
  return []
}
