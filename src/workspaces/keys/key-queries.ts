import type { ApiKey } from '../workspace.ts'
import type { KeyQuery, KeyStore } from './key-store.ts'
import { command, readRows, type Database, type Row, type Statement, type Values } from '../../store/database.ts'
import { alertEvent, type AlertEvent } from '../../alerts/events.ts'
import { addEvent } from '../../alerts/queries/alerts.ts'
import { IS_REQUEST } from '../../ledger/queries/usage-sums.ts'

const NEXT_CHANGE = '(SELECT coalesce(max(change), 0) + 1 FROM api_keys)'

/** As in the partial index. */
const HAS_SPEND_LIMIT = '(spend_per_day_pico_aud IS NOT NULL OR spend_per_month_pico_aud IS NOT NULL)'

/**
 * Requests do not record when a key was used. Instead, the hourly sums show in which hour a key was last used, and only the
 * rows of that hour are read.
 */
const lastUsed = (ids: string): string => `SELECT key_id, (
    SELECT settled_at FROM ledger
    WHERE ledger.workspace_id = hours.workspace_id AND settled_at >= hours.hour AND ledger.key_id = hours.key_id
      AND ${IS_REQUEST}
    ORDER BY settled_at DESC LIMIT 1
  ) AS at
  FROM (
    SELECT id AS key_id, workspace_id, (
      SELECT hour FROM usage_hours WHERE usage_hours.key_id = api_keys.id AND requests > 0 ORDER BY hour DESC LIMIT 1
    ) AS hour
    FROM api_keys WHERE id IN (${ids})
  ) AS hours WHERE hour IS NOT NULL`

export function keyQueries(database: Database): KeyStore {
  const among = database.dialect.selectTexts('?')

  /** The lock makes changes visible in the order of their numbers. */
  async function change(...statements: readonly Statement[]): Promise<void> {
    await database.transact({ access: 'write', locks: ['keys'], statements })
  }

  return {
    createKey: (it) =>
      change(
        command(
          `INSERT INTO api_keys (id, workspace_id, hash, ending, name, created_at, expires_at, requests_per_minute,
             spend_per_day_pico_aud, spend_per_month_pico_aud, allowed_models, allowed_endpoints, allowed_addresses, manage_keys,
             tokens_per_minute, change)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ${NEXT_CHANGE})`,
          it.id,
          it.workspaceId,
          it.hash,
          it.ending,
          it.name,
          it.createdAt,
          it.expiresAt,
          it.requestsPerMinute,
          it.spendPerDay,
          it.spendPerMonth,
          listText(it.allowedModels),
          listText(it.allowedEndpoints),
          listText(it.allowedAddresses),
          it.manageKeys ? 1 : 0,
          it.tokensPerMinute,
        ),
        addEvent(createdEvent(it), 'api_keys WHERE id = ?', it.id),
      ),
    changeKey: (id, it) => {
      const columns = {
        name: it.name,
        expires_at: it.expiresAt,
        manage_keys: it.manageKeys === undefined ? undefined : it.manageKeys ? 1 : 0,
        requests_per_minute: it.requestsPerMinute,
        tokens_per_minute: it.tokensPerMinute,
        spend_per_day_pico_aud: it.spendPerDay,
        spend_per_month_pico_aud: it.spendPerMonth,
        allowed_models: it.allowedModels && listText(it.allowedModels),
        allowed_endpoints: it.allowedEndpoints && listText(it.allowedEndpoints),
        allowed_addresses: it.allowedAddresses && listText(it.allowedAddresses),
      }
      const given = Object.entries(columns).filter(([, value]) => value !== undefined)
      const set = [...given.map(([column]) => `${column} = ?`), `change = ${NEXT_CHANGE}`].join(', ')
      const values = given.map(([, value]) => value as string | number | bigint | null)
      return change(command(`UPDATE api_keys SET ${set} WHERE id = ? AND revoked_at IS NULL`, ...values, id))
    },
    revokeKey: (id, at) =>
      change(
        command(
          `UPDATE api_keys SET revoked_at = ?, change = ${NEXT_CHANGE} WHERE id = ? AND revoked_at IS NULL`,
          at,
          id,
        ),
        addEvent(revokedEvent(id, at), 'api_keys WHERE id = ? AND revoked_at = ?', id, at),
        command('DELETE FROM console_sessions WHERE key_hash = (SELECT hash FROM api_keys WHERE id = ?)', id),
      ),
    async key(id) {
      const [row] = await readRows(database, 'SELECT * FROM api_keys WHERE id = ?', id)
      return row && toKey(row)
    },
    async keysByHash(hashes) {
      const sql = `SELECT * FROM api_keys WHERE hash IN (${among})`
      return (await readRows(database, sql, JSON.stringify(hashes))).map(toKey)
    },
    async keys(selection) {
      const { where, values } = conditionsOf(selection)
      const sql = `SELECT * FROM api_keys ${where} ORDER BY created_at DESC, id DESC LIMIT ?`
      return (await readRows(database, sql, ...values, selection.limit)).map(toKey)
    },
    async keysLastUsed(ids) {
      const rows = await readRows(database, lastUsed(among), JSON.stringify(ids))
      return new Map(rows.flatMap((row) => (row['at'] === null ? [] : [[String(row['key_id']), Number(row['at'])]])))
    },
    async expiringKeys({ now, before, after, limit }) {
      const sql = `SELECT * FROM api_keys WHERE revoked_at IS NULL AND expires_at IS NOT NULL AND expires_at < ?
        AND (expires_at, id) > (?, ?) ORDER BY expires_at, id LIMIT ?`
      return (await readRows(database, sql, before, after?.expiresAt ?? now, after?.id ?? '', limit)).map(toKey)
    },
    async keysWithSpendLimit({ now, after = '', limit }) {
      const sql = `SELECT * FROM api_keys WHERE ${HAS_SPEND_LIMIT} AND revoked_at IS NULL
        AND (expires_at IS NULL OR expires_at > ?) AND id > ? ORDER BY id LIMIT ?`
      return (await readRows(database, sql, now, after, limit)).map(toKey)
    },
    async lastKeyChange() {
      const [row] = await readRows(database, 'SELECT coalesce(max(change), 0) AS last FROM api_keys')
      return Number(row?.['last'])
    },
    async keyChanges(after, limit) {
      const sql = 'SELECT change, hash FROM api_keys WHERE change > ? ORDER BY change LIMIT ?'
      const rows = await readRows(database, sql, after, limit)
      return rows.map((row) => ({ number: Number(row['change']), hash: String(row['hash']) }))
    },
  }
}

function createdEvent({ id, createdAt, expiresAt }: ApiKey): AlertEvent {
  const data = { expires_at: expiresAt === null ? null : new Date(expiresAt).toISOString() }
  return alertEvent('key.created', { unique: [id], at: createdAt, keyId: id, data })
}

function revokedEvent(id: string, at: number): AlertEvent {
  return alertEvent('key.revoked', { unique: [id], at, keyId: id, data: {} })
}

function conditionsOf({ workspaceId, validAt, before }: KeyQuery): { where: string; values: Values } {
  const conditions: string[] = []
  const values: (string | number)[] = []
  if (workspaceId !== undefined) {
    conditions.push('workspace_id = ?')
    values.push(workspaceId)
  }
  if (validAt !== undefined) {
    conditions.push('revoked_at IS NULL', '(expires_at IS NULL OR expires_at > ?)')
    values.push(validAt)
  }
  if (before) {
    conditions.push('(created_at, id) < (?, ?)')
    values.push(before.createdAt, before.id)
  }
  return { where: conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`, values }
}

function toKey(row: Row): ApiKey {
  return {
    id: String(row['id']),
    workspaceId: String(row['workspace_id']),
    hash: String(row['hash']),
    ending: row['ending'] === null ? null : (row['ending'] as string),
    name: row['name'] === null ? null : (row['name'] as string),
    createdAt: Number(row['created_at']),
    expiresAt: row['expires_at'] === null ? null : Number(row['expires_at']),
    manageKeys: row['manage_keys'] === 1n,
    revokedAt: row['revoked_at'] === null ? null : Number(row['revoked_at']),
    requestsPerMinute: row['requests_per_minute'] === null ? null : Number(row['requests_per_minute']),
    tokensPerMinute: row['tokens_per_minute'] === null ? null : Number(row['tokens_per_minute']),
    spendPerDay: row['spend_per_day_pico_aud'] as bigint | null,
    spendPerMonth: row['spend_per_month_pico_aud'] as bigint | null,
    allowedModels: listIn(row['allowed_models']),
    allowedEndpoints: listIn(row['allowed_endpoints']),
    allowedAddresses: listIn(row['allowed_addresses']),
  }
}

const listText = (list: readonly string[] | null): string | null => list && JSON.stringify(list)

function listIn(text: unknown): readonly string[] | null {
  return text === null ? null : (JSON.parse(text as string) as readonly string[])
}
