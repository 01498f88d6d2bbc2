import type { PriceList } from '../../core/money/rating.ts'
import type { AccountsSnapshot } from '../../ports/accounts.ts'
import type { AccountStore } from '../../ports/store.ts'
import { query, writeOne, type Database, type Row } from '../database.ts'

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
    setBuyer: (id, { name, abn, address }) =>
      writeOne(
        database,
        'UPDATE workspaces SET buyer_name = ?, buyer_abn = ?, buyer_address = ? WHERE id = ?',
        name,
        abn,
        address,
        id,
      ),
    createKey: (it) =>
      writeOne(
        database,
        'INSERT INTO api_keys (id, workspace_id, hash, created_at) VALUES (?, ?, ?, ?)',
        it.id,
        it.workspaceId,
        it.hash,
        it.createdAt,
      ),
    revokeKey: (id, at) =>
      writeOne(database, 'UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL', at, id),
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
