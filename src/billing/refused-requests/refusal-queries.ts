import type { ErrorCode } from '../../shared/errors.ts'
import { NEWEST_OF_CODE, type Refusal, type RefusalBatch } from './refusals.ts'
import type { RefusalStore, RefusedQuery } from './refusal-store.ts'
import {
  command,
  commandForEach,
  commandForGiven,
  readRows,
  type Database,
  type Row,
  type Transaction,
  type Values,
} from '../../store/database.ts'
import type { GivenColumn, SqlDialect } from '../../store/fragments.ts'

/** Requests that were refused before they reached an engine: counts by hour, and the newest ones. */

/** More than all processes together add between two clean-ups. */
const TRIMMED_AT_ONCE = 10_000

const HOUR_COLUMNS: readonly GivenColumn[] = [
  { name: 'workspace_id', type: 'text' },
  { name: 'hour', type: 'integer' },
  { name: 'key_id', type: 'text' },
  { name: 'code', type: 'text' },
  { name: 'requests', type: 'integer' },
]

const REQUEST_COLUMNS: readonly GivenColumn[] = [
  { name: 'request_id', type: 'text' },
  { name: 'at', type: 'integer' },
  { name: 'workspace_id', type: 'text' },
  { name: 'key_id', type: 'text' },
  { name: 'endpoint', type: 'text' },
  { name: 'model', type: 'text' },
  { name: 'code', type: 'text' },
  { name: 'http_status', type: 'integer' },
  { name: 'param', type: 'text' },
  { name: 'reason', type: 'text' },
]

const TRIM = `DELETE FROM refused_requests WHERE request_id IN (
  SELECT request_id FROM refused_requests WHERE workspace_id = ? AND code = ?
  ORDER BY at DESC, request_id DESC LIMIT ${TRIMMED_AT_ONCE} OFFSET ${NEWEST_OF_CODE})`

export function refusalQueries(database: Database): RefusalStore {
  return {
    async addRefusals(batch, since) {
      await database.transact(adding(database.dialect, batch, since))
    },
    async refusedOverTime(selection) {
      const { where, values } = filterOf(selection, 'hour')
      const rows = await readRows(
        database,
        `SELECT hour, code, sum(requests) AS requests FROM refused_hours WHERE ${where}
         GROUP BY hour, code ORDER BY hour, code`,
        ...values,
      )
      return rows.map((row) => ({ hour: Number(row['hour']), code: codeOf(row), requests: Number(row['requests']) }))
    },
    async refusedGroups({ limit, ...selection }) {
      const { where, values } = filterOf(selection, 'hour')
      const rows = await readRows(
        database,
        `SELECT workspace_id, key_id, code, sum(requests) AS requests FROM refused_hours WHERE ${where}
         GROUP BY workspace_id, key_id, code ORDER BY sum(requests) DESC, workspace_id, key_id, code LIMIT ?`,
        ...values,
        limit,
      )
      return rows.map((row) => ({
        workspaceId: String(row['workspace_id']),
        keyId: String(row['key_id']),
        code: codeOf(row),
        requests: Number(row['requests']),
      }))
    },
    async refusedRequests({ limit, before, model, httpStatus, ...selection }) {
      const { where, values } = filterOf(selection, 'at', { model, http_status: httpStatus })
      const place = before ? ' AND (at, request_id) < (?, ?)' : ''
      const sql = `SELECT * FROM refused_requests WHERE ${where}${place} ORDER BY at DESC, request_id DESC LIMIT ?`
      const after = before ? [before.at, before.requestId] : []
      return (await readRows(database, sql, ...values, ...after, limit)).map(toRefusal)
    },
    async refusedRequest(requestId) {
      const [row] = await readRows(database, 'SELECT * FROM refused_requests WHERE request_id = ?', requestId)
      return row && toRefusal(row)
    },
  }
}

/** The lock prevents deadlocks between processes that update the same rows. */
function adding(dialect: SqlDialect, { hours, newest }: RefusalBatch, since: number): Transaction {
  const touched = new Map(newest.map(({ workspaceId, code }) => [`${workspaceId} ${code}`, [workspaceId, code]]))
  const counts = `${insertGiven(dialect, 'refused_hours', HOUR_COLUMNS)}
    ON CONFLICT (workspace_id, hour, key_id, code) DO UPDATE SET requests = refused_hours.requests + excluded.requests`
  const requests = `${insertGiven(dialect, 'refused_requests', REQUEST_COLUMNS)} ON CONFLICT DO NOTHING`
  return {
    access: 'write',
    locks: ['refusals'],
    statements: [
      commandForGiven(
        counts,
        hours.map((it) => [it.workspaceId, it.hour, it.keyId, it.code, it.requests]),
      ),
      commandForGiven(requests, newest.map(requestValues)),
      commandForEach(TRIM, [...touched.values()]),
      command('DELETE FROM refused_hours WHERE hour < ?', since),
      command('DELETE FROM refused_requests WHERE at < ?', since),
    ],
  }
}

function insertGiven(dialect: SqlDialect, table: string, columns: readonly GivenColumn[]): string {
  const names = columns.map(({ name }) => name)
  return `INSERT INTO ${table} (${names.join(', ')}) SELECT ${names.map(dialect.givenValue).join(', ')}
    ${dialect.fromGiven(columns)} WHERE true`
}

/** In the order of REQUEST_COLUMNS. */
function requestValues(it: Refusal): Values {
  return [
    it.requestId,
    it.at,
    it.workspaceId,
    it.keyId,
    it.endpoint,
    it.model,
    it.code,
    it.httpStatus,
    it.param,
    it.reason,
  ]
}

function filterOf(
  { workspaceId, keyId, code, from, to }: RefusedQuery,
  time: 'hour' | 'at',
  others: Readonly<Record<string, string | number | undefined>> = {},
): { where: string; values: Values } {
  const given = Object.entries({ workspace_id: workspaceId, key_id: keyId, code, ...others }).flatMap(
    ([column, value]) => (value === undefined ? [] : [[column, value] as const]),
  )
  return {
    where: [...given.map(([column]) => `${column} = ?`), `${time} >= ?`, `${time} < ?`].join(' AND '),
    values: [...given.map(([, value]) => value), from, to],
  }
}

const codeOf = (row: Row): ErrorCode => String(row['code']) as ErrorCode

function toRefusal(row: Row): Refusal {
  return {
    requestId: String(row['request_id']),
    at: Number(row['at']),
    workspaceId: String(row['workspace_id']),
    keyId: String(row['key_id']),
    endpoint: String(row['endpoint']),
    model: String(row['model']),
    code: codeOf(row),
    httpStatus: Number(row['http_status']),
    param: String(row['param']),
    reason: String(row['reason']),
  }
}
