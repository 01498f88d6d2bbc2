import type { PriceList } from '../../core/money/rating.ts'
import type { AccountsSnapshot } from '../../ports/accounts.ts'
import type { AccountStore } from '../../ports/store.ts'
import { query, writeOne, type Database, type Row } from '../database.ts'
import { IS_REQUEST } from './usage-sums.ts'

/**
 * Costs nothing when a request is served: the sums say on which day, then in which hour a key was last used, and only the
 * rows of that hour are looked at.
 */
const LAST_USED = `SELECT key_id, (
    SELECT settled_at FROM ledger
    WHERE ledger.workspace_id = hours.workspace_id AND settled_at >= hours.hour AND ledger.key_id = hours.key_id
      AND ${IS_REQUEST}
    ORDER BY settled_at DESC LIMIT 1
  ) AS at
  FROM (
    SELECT days.workspace_id, days.key_id, max(usage_hours.hour) AS hour
    FROM (
      SELECT workspace_id, key_id, max(day) AS day FROM usage_days WHERE requests > 0 GROUP BY workspace_id, key_id
    ) AS days
    JOIN usage_hours ON usage_hours.workspace_id = days.workspace_id AND usage_hours.key_id = days.key_id
      AND usage_hours.hour >= days.day - 3600000 AND usage_hours.requests > 0
    GROUP BY days.workspace_id, days.key_id
  ) AS hours`

export function accountQueries(database: Database): AccountStore {
  return {
    async accounts() {
      const [workspaces = [], keys = [], prices = []] = await database.transact({
        access: 'read',
        statements: [
          query('SELECT * FROM workspaces ORDER BY created_at, id'),
          query('SELECT * FROM api_keys ORDER BY created_at, id'),
          query('SELECT * FROM price_versions ORDER BY id'),
        ],
      })
      return toSnapshot(workspaces, keys, prices)
    },
    createWorkspace: (it) =>
      writeOne(
        database,
        'INSERT INTO workspaces (id, name, requests_per_minute, created_at) VALUES (?, ?, ?, ?)',
        it.id,
        it.name,
        it.requestsPerMinute,
        it.createdAt,
      ),
    setRequestsPerMinute: (id, limit) =>
      writeOne(database, 'UPDATE workspaces SET requests_per_minute = ? WHERE id = ?', limit, id),
    setSpendLimit: (id, limit) =>
      writeOne(
        database,
        'UPDATE workspaces SET spend_limit_pico_aud = ?, spend_limit_is_soft = ? WHERE id = ?',
        limit?.amount ?? null,
        limit?.isSoft ? 1 : 0,
        id,
      ),
    setBuyer: (id, { name, abn, address, purchaseOrder }) =>
      writeOne(
        database,
        'UPDATE workspaces SET buyer_name = ?, buyer_abn = ?, buyer_address = ?, buyer_purchase_order = ? WHERE id = ?',
        name,
        abn,
        address,
        purchaseOrder,
        id,
      ),
    createKey: (it) =>
      writeOne(
        database,
        'INSERT INTO api_keys (id, workspace_id, hash, name, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?)',
        it.id,
        it.workspaceId,
        it.hash,
        it.name,
        it.createdAt,
        it.expiresAt,
      ),
    revokeKey: (id, at) =>
      writeOne(database, 'UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL', at, id),
    async keysLastUsed() {
      const [rows = []] = await database.transact({ access: 'read', statements: [query(LAST_USED)] })
      return new Map(rows.flatMap((row) => (row['at'] === null ? [] : [[String(row['key_id']), Number(row['at'])]])))
    },
    async addPriceVersion(it) {
      const sql =
        'INSERT INTO price_versions (model, workspace_id, prices, effective_from) VALUES (?, ?, ?, ?) RETURNING id'
      const prices = it.prices && JSON.stringify(it.prices)
      const [added] = await database.transact({
        access: 'write',
        locks: [],
        statements: [query(sql, it.model, it.workspaceId, prices, it.effectiveFrom)],
      })
      return Number(added?.[0]?.['id'])
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
        purchaseOrder: optionalText(row['buyer_purchase_order']),
      },
    })),
    keys: keys.map((row) => ({
      id: String(row['id']),
      workspaceId: String(row['workspace_id']),
      hash: String(row['hash']),
      name: optionalText(row['name']),
      createdAt: Number(row['created_at']),
      expiresAt: optionalNumber(row['expires_at']),
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
