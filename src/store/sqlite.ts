import { Worker } from 'node:worker_threads'
import type { PriceList } from '../core/money/rating.ts'
import { sydneyDay } from '../core/money/sydney-time.ts'
import type { AccountsSnapshot } from '../ports/accounts.ts'
import type { LedgerBatch } from '../ports/ledger.ts'
import type { Store } from '../ports/store.ts'
import type { ArrivalsQuery } from '../ports/usage.ts'
import { invoiceQueries } from './invoice-queries.ts'
import { intentJournal } from './intent-journal.ts'
import { COUNT_OPEN, intentValues, RECOVER, rowValues, SETTLE, type Row, type Values } from './ledger-rows.ts'
import { ADD_UP } from './schema.ts'
import type { Statement, StoreReply, StoreRequest } from './sqlite-worker.ts'
import { usageQueries } from './usage-queries.ts'

const OPEN = 'INSERT INTO intents VALUES (?, ?)'
const CLOSE = 'DELETE FROM intents WHERE id = ?'
// Nobody is admitted before arriving, so the first bound finds the rows by their index.
const ARRIVALS = `SELECT started_at - queue_wait_ms AS arrived_at, input_tokens, max_tokens, output_tokens FROM ledger
  WHERE lane = ? AND started_at >= ? AND started_at - queue_wait_ms >= ? AND started_at - queue_wait_ms < ?
  ORDER BY started_at, request_id LIMIT ? OFFSET ?`

const addUp: readonly Statement[] = ADD_UP.map((sql) => ({ sql, rows: [[]] }))

/** Opens the store in a directory. A service takes it exclusively; commands share it with the service. */
export async function sqliteStore(dataDir: string, options: { exclusive: boolean }): Promise<Store> {
  const worker = new Worker(new URL('sqlite-worker.ts', import.meta.url), { workerData: { dataDir, ...options } })
  const waiting = new Map<number, { resolve(results: readonly (readonly Row[])[]): void; reject(error: Error): void }>()
  let lastId = 0
  let failure: Error | undefined

  const opened = new Promise<void>((resolve, reject) => waiting.set(0, { resolve: () => resolve(), reject }))
  const fail = (error: Error): void => {
    failure ??= error
    for (const call of waiting.values()) call.reject(failure)
    waiting.clear()
  }
  worker.on('message', (reply: StoreReply) => {
    const call = waiting.get(reply.id)
    waiting.delete(reply.id)
    if (reply.error === undefined) call?.resolve(reply.results ?? [])
    else call?.reject(new Error(reply.error))
  })
  worker.on('error', (error) => fail(error instanceof Error ? error : new Error(String(error))))
  const ended = new Promise<void>((resolve) =>
    worker.once('exit', () => {
      fail(new Error('the store is closed'))
      resolve()
    }),
  )

  function transact(statements: readonly Statement[]): Promise<readonly (readonly Row[])[]> {
    if (failure) return Promise.reject(failure)
    const id = ++lastId
    const addsRows = statements.some(({ sql, rows }) => rows.length > 0 && sql.startsWith('INSERT INTO ledger'))
    worker.postMessage({ id, statements: addsRows ? [...statements, ...addUp] : statements } satisfies StoreRequest)
    return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }))
  }
  const write = async (sql: string, ...values: Values): Promise<void> =>
    void (await transact([{ sql, rows: [values] }]))
  const read = async (sql: string, ...values: Values): Promise<readonly Row[]> =>
    (await transact([{ sql, rows: [values], read: true }]))[0] ?? []

  await opened
  const journal = intentJournal()
  return {
    async accounts() {
      const [workspaces, keys, prices] = await transact([
        { sql: 'SELECT * FROM workspaces ORDER BY created_at, id', rows: [], read: true },
        { sql: 'SELECT * FROM api_keys ORDER BY created_at, id', rows: [], read: true },
        { sql: 'SELECT * FROM price_versions ORDER BY id', rows: [], read: true },
      ])
      return toSnapshot(workspaces ?? [], keys ?? [], prices ?? [])
    },
    createWorkspace: (it) =>
      write(
        'INSERT INTO workspaces (id, name, requests_per_minute, created_at) VALUES (?, ?, ?, ?)',
        it.id,
        it.name,
        it.requestsPerMinute,
        it.createdAt,
      ),
    setRequestsPerMinute: (id, limit) => write('UPDATE workspaces SET requests_per_minute = ? WHERE id = ?', limit, id),
    setSpendLimit: (id, limit) =>
      write(
        'UPDATE workspaces SET spend_limit_pico_aud = ?, spend_limit_is_soft = ? WHERE id = ?',
        limit?.amount ?? null,
        limit?.isSoft ? 1 : 0,
        id,
      ),
    setBuyer: (id, { name, abn, address }) =>
      write(
        'UPDATE workspaces SET buyer_name = ?, buyer_abn = ?, buyer_address = ? WHERE id = ?',
        name,
        abn,
        address,
        id,
      ),
    createKey: (it) =>
      write('INSERT INTO api_keys VALUES (?, ?, ?, ?, NULL)', it.id, it.workspaceId, it.hash, it.createdAt),
    revokeKey: (id, at) => write('UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL', at, id),
    async addPriceVersion(it) {
      const values = [it.model, it.workspaceId, it.prices && JSON.stringify(it.prices), it.effectiveFrom]
      const sql =
        'INSERT INTO price_versions (model, workspace_id, prices, effective_from) VALUES (?, ?, ?, ?) RETURNING id'
      return Number((await read(sql, ...values))[0]?.['id'])
    },
    async writeLedger(batch: LedgerBatch) {
      const { intents, rows } = batch
      const { id, closed } = journal.next()
      await transact([
        { sql: OPEN, rows: intents.length === 0 ? [] : [[id, JSON.stringify(intents.map(intentValues))]] },
        { sql: SETTLE, rows: rows.map((row) => [...rowValues(row), row.workspaceId]) },
        { sql: CLOSE, rows: closed.map((it) => [it]) },
      ])
      journal.written(id, closed, batch)
    },
    async recoverIntents(now) {
      const [open] = await transact([
        { sql: COUNT_OPEN, rows: [], read: true },
        { sql: RECOVER, rows: [[now, sydneyDay(now)]] },
        { sql: 'DELETE FROM intents', rows: [[]] },
      ])
      return Number(open?.[0]?.['count'])
    },
    ...usageQueries(read),
    ...invoiceQueries(transact, read),
    async arrivals({ lane, from, to, limit, offset }: ArrivalsQuery) {
      const rows = await read(ARRIVALS, lane, from, from, to, limit, offset)
      return rows.map((row) => ({
        arrivedAt: Number(row['arrived_at']),
        inputTokens: Number(row['input_tokens']),
        maxTokens: Number(row['max_tokens']),
        outputTokens: Number(row['output_tokens']),
      }))
    },
    async close() {
      worker.postMessage('close')
      await ended
    },
  }
}

function toSnapshot(workspaces: readonly Row[], keys: readonly Row[], prices: readonly Row[]): AccountsSnapshot {
  return {
    workspaces: workspaces.map((row) => ({
      id: String(row['id']),
      name: String(row['name']),
      requestsPerMinute: optionalNumber(row['requests_per_minute']),
      createdAt: Number(row['created_at']),
      spendLimit:
        row['spend_limit_pico_aud'] === null
          ? null
          : { amount: row['spend_limit_pico_aud'] as bigint, isSoft: row['spend_limit_is_soft'] === 1n },
      buyer: {
        name: optionalText(row['buyer_name']),
        abn: optionalText(row['buyer_abn']),
        address: optionalText(row['buyer_address']),
      },
    })),
    keys: keys.map((row) => ({
      id: String(row['id']),
      workspaceId: String(row['workspace_id']),
      hash: String(row['hash']),
      createdAt: Number(row['created_at']),
      revokedAt: optionalNumber(row['revoked_at']),
    })),
    prices: prices.map((row) => ({
      id: Number(row['id']),
      model: String(row['model']),
      workspaceId: optionalText(row['workspace_id']),
      prices: row['prices'] === null ? null : (JSON.parse(row['prices'] as string) as PriceList),
      effectiveFrom: Number(row['effective_from']),
    })),
  }
}

function optionalNumber(value: unknown): number | null {
  return value === null ? null : Number(value)
}

function optionalText(value: unknown): string | null {
  return value === null ? null : (value as string)
}
