import { Pool, types, type CustomTypesConfig, type PoolClient } from 'pg'
import { withoutPassword } from '../../shared/address-without-password.ts'
import type { DatabaseEvents } from '../database.ts'
import { databaseFailure, explainPostgresError, isAway } from './failures.ts'
import { timeLimits } from './time-limits.ts'

/** A bounded number of connections to one PostgreSQL. */
export interface Connections {
  /** Runs `work` on a connection that it does not share. Rejects at once while PostgreSQL is unreachable. */
  use<Result>(work: (client: PoolClient) => Promise<Result>): Promise<Result>
  /** False while PostgreSQL does not answer. */
  isUp(): boolean
  close(): Promise<void>
}

export interface ConnectionsOptions {
  readonly url: string
  readonly connectionsMax: number
  readonly events?: DatabaseEvents | undefined
  /** Runs on the first connection. If it fails, nothing is opened. */
  prepare(client: PoolClient): Promise<void>
}

/** How long to wait for a new connection, or for a free one in the pool. */
const CONNECT_MS = 5000
const IDLE_MS = 60_000
/** Longer than PostgreSQL's own limit: after this time, the connection itself does not answer. */
const ANSWER_MS = timeLimits.statement_timeout + 5000
const WAITING_MAX = 1000
const POLL_MS = 500

/** Integers are bigint, also sums of them, which PostgreSQL makes `numeric`. Everything else is text. */
const { INT2, INT4, INT8, NUMERIC } = types.builtins
const INTEGERS: ReadonlySet<number> = new Set([INT2, INT4, INT8, NUMERIC])
const valueTypes: CustomTypesConfig = {
  getTypeParser: (type: number) => (INTEGERS.has(type) ? (text: string) => BigInt(text) : (text: string) => text),
}

export async function openConnections(options: ConnectionsOptions): Promise<Connections> {
  const { url, connectionsMax, events, prepare } = options
  const address = withoutPassword(url)
  const pool = new Pool({
    connectionString: url,
    max: connectionsMax,
    types: valueTypes,
    application_name: 'weir',
    pipeline: true,
    keepAlive: true,
    connectionTimeoutMillis: CONNECT_MS,
    idleTimeoutMillis: IDLE_MS,
    query_timeout: ANSWER_MS,
    ...timeLimits,
  })
  let isUp = false
  let isClosed = false
  let closed: Promise<void> | undefined
  let pollTimer: NodeJS.Timeout | undefined
  pool.on('error', failed)
  // The pool handles errors only of idle connections. Errors of a busy connection also reject its query.
  pool.on('connect', (client) => client.on('error', failed))

  /** Called with every failure. Polls until PostgreSQL answers again. */
  function failed(error: Error): void {
    if (!isUp || isClosed || !isAway(error)) return
    isUp = false
    events?.ended(explainPostgresError(error, address))
    pollAgain()
  }

  function pollAgain(): void {
    pollTimer = setTimeout(() => {
      pool.query('SELECT 1').then(() => {
        if (isClosed) return
        isUp = true
        events?.replaced()
      }, pollAgain)
    }, POLL_MS)
    if (isClosed) clearTimeout(pollTimer)
  }

  async function connect(): Promise<PoolClient> {
    if (pool.waitingCount >= WAITING_MAX) throw busy()
    try {
      return await pool.connect()
    } catch (error) {
      if (pool.totalCount >= connectionsMax && pool.idleCount === 0) throw busy(error)
      throw error
    }
  }

  const busy = (cause?: unknown): Error =>
    databaseFailure('ERR_DATABASE_BUSY', `${address}: all ${connectionsMax} connections are in use: try again`, cause)

  async function use<Result>(work: (client: PoolClient) => Promise<Result>): Promise<Result> {
    let client: PoolClient | undefined
    try {
      client = await connect()
      const result = await work(client)
      client.release()
      return result
    } catch (error) {
      client?.release(isAway(error))
      if ((error as NodeJS.ErrnoException).code !== 'ERR_DATABASE_BUSY') failed(error as Error)
      throw explainPostgresError(error, address)
    }
  }

  function close(): Promise<void> {
    isClosed = true
    clearTimeout(pollTimer)
    return (closed ??= pool.end())
  }

  try {
    await use(prepare)
  } catch (error) {
    await close()
    throw error
  }
  isUp = true
  return {
    isUp: () => isUp,
    async use(work) {
      if (isClosed) throw new Error('the store is closed')
      if (!isUp) throw databaseFailure('ERR_DATABASE_AWAY', `${address}: PostgreSQL does not answer`)
      return use(work)
    },
    close,
  }
}
