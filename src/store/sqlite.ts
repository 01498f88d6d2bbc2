import { Worker } from 'node:worker_threads'
import type { Intent, LedgerRow, Outcome } from '../core/ledger.ts'
import type { PriceList } from '../core/rating.ts'
import type { AccountsSnapshot, ArrivalsQuery, LedgerBatch, Store, UsageQuery } from '../ports.ts'
import type { Statement, StoreReply, StoreRequest } from './sqlite-worker.ts'

const INTENT_COLUMNS = 'request_id, workspace_id, key_id, model, lane, endpoint, price_version, max_tokens, started_at'
const ROW_COLUMNS = `${INTENT_COLUMNS}, input_tokens, cached_input_tokens, output_tokens, images, audio_ms,
  estimated, outcome, amount_pico_aud, queue_wait_ms, first_token_ms, duration_ms, settled_at`
const placeholders = (columns: string): string => columns.replaceAll(/\w+/g, '?')

// A batch may be written again after an error of unknown effect: a row that is there already stays as it is.
const OPEN = `INSERT INTO intents (${INTENT_COLUMNS}) VALUES (${placeholders(INTENT_COLUMNS)}) ON CONFLICT DO NOTHING`
const SETTLE = `INSERT INTO ledger (${ROW_COLUMNS}) VALUES (${placeholders(ROW_COLUMNS)}) ON CONFLICT DO NOTHING`
const CLOSE_INTENT = 'DELETE FROM intents WHERE request_id = ?'
const RECOVER = `INSERT INTO ledger (${ROW_COLUMNS})
  SELECT ${INTENT_COLUMNS}, 0, 0, 0, 0, 0, 0, 'interrupted', 0, 0, NULL, 0, ? FROM intents WHERE true ON CONFLICT DO NOTHING`
const USAGE = `SELECT ${ROW_COLUMNS} FROM ledger
  WHERE workspace_id = ? AND settled_at >= ? AND settled_at < ? ORDER BY settled_at, request_id LIMIT ? OFFSET ?`
// Nobody is admitted before arriving, so the first bound finds the rows by their index.
const ARRIVALS = `SELECT started_at - queue_wait_ms AS arrived_at, input_tokens, max_tokens, output_tokens FROM ledger
  WHERE lane = ? AND started_at >= ? AND started_at - queue_wait_ms >= ? AND started_at - queue_wait_ms < ?
  ORDER BY started_at, request_id LIMIT ? OFFSET ?`

type Values = Statement['rows'][number]
type Row = Record<string, unknown>

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
    worker.postMessage({ id, statements } satisfies StoreRequest)
    return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }))
  }
  const write = async (sql: string, ...values: Values): Promise<void> =>
    void (await transact([{ sql, rows: [values] }]))
  const read = async (sql: string, ...values: Values): Promise<readonly Row[]> =>
    (await transact([{ sql, rows: [values], read: true }]))[0] ?? []

  await opened
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
      write('INSERT INTO workspaces VALUES (?, ?, ?, ?)', it.id, it.name, it.requestsPerMinute, it.createdAt),
    setRequestsPerMinute: (id, limit) => write('UPDATE workspaces SET requests_per_minute = ? WHERE id = ?', limit, id),
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
      await transact([
        { sql: OPEN, rows: batch.intents.map(intentValues) },
        { sql: SETTLE, rows: batch.rows.map(rowValues) },
        { sql: CLOSE_INTENT, rows: batch.rows.map((row) => [row.requestId]) },
      ])
    },
    async recoverIntents(now) {
      const [open] = await transact([
        { sql: 'SELECT count(*) AS count FROM intents', rows: [], read: true },
        { sql: RECOVER, rows: [[now]] },
        { sql: 'DELETE FROM intents', rows: [[]] },
      ])
      return Number(open?.[0]?.['count'])
    },
    async usage(query: UsageQuery) {
      const rows = await read(USAGE, query.workspaceId, query.from, query.to, query.limit, query.offset)
      return rows.map(toLedgerRow)
    },
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

function intentValues(it: Intent): Values {
  return [
    it.requestId,
    it.workspaceId,
    it.keyId,
    it.model,
    it.lane,
    it.endpoint,
    it.priceVersion,
    it.maxTokens,
    it.startedAt,
  ]
}

function rowValues(it: LedgerRow): Values {
  return [
    ...intentValues(it),
    it.inputTokens,
    it.cachedInputTokens,
    it.outputTokens,
    it.images,
    it.audioMs,
    it.estimated ? 1 : 0,
    it.outcome,
    it.amount,
    it.queueWaitMs,
    it.firstTokenMs,
    it.durationMs,
    it.settledAt,
  ]
}

function toLedgerRow(row: Row): LedgerRow {
  return {
    requestId: String(row['request_id']),
    workspaceId: String(row['workspace_id']),
    keyId: String(row['key_id']),
    model: String(row['model']),
    lane: String(row['lane']),
    endpoint: String(row['endpoint']),
    priceVersion: Number(row['price_version']),
    maxTokens: Number(row['max_tokens']),
    startedAt: Number(row['started_at']),
    inputTokens: Number(row['input_tokens']),
    cachedInputTokens: Number(row['cached_input_tokens']),
    outputTokens: Number(row['output_tokens']),
    images: Number(row['images']),
    audioMs: Number(row['audio_ms']),
    estimated: row['estimated'] === 1n,
    outcome: String(row['outcome']) as Outcome,
    amount: row['amount_pico_aud'] as bigint,
    queueWaitMs: Number(row['queue_wait_ms']),
    firstTokenMs: optionalNumber(row['first_token_ms']),
    durationMs: Number(row['duration_ms']),
    settledAt: Number(row['settled_at']),
  }
}

function toSnapshot(workspaces: readonly Row[], keys: readonly Row[], prices: readonly Row[]): AccountsSnapshot {
  return {
    workspaces: workspaces.map((row) => ({
      id: String(row['id']),
      name: String(row['name']),
      requestsPerMinute: optionalNumber(row['requests_per_minute']),
      createdAt: Number(row['created_at']),
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
