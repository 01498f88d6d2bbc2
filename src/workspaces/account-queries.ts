import type { PriceList } from '../billing/rating/rating.ts'
import type { PriceVersion, Workspace } from './workspace.ts'
import type { AccountStore } from './account-store.ts'
import { query, readRows, writeOne, type Database, type Row } from '../store/database.ts'

const ADD_PRICE = `INSERT INTO price_versions (model, workspace_id, prices, effective_from) SELECT ?, ?, ?, ?
  WHERE ? = (SELECT coalesce(max(id), 0) FROM price_versions WHERE model = ? AND coalesce(workspace_id, '') = ?)
  RETURNING id`
/** More in one transaction would delay the ledger. */
const PRICES_AT_ONCE = 500

export function accountQueries(database: Database): AccountStore {
  return {
    workspaces: async () =>
      (await readRows(database, 'SELECT * FROM workspaces ORDER BY created_at, id')).map(toWorkspace),
    priceVersions: async () =>
      (await readRows(database, 'SELECT * FROM price_versions ORDER BY id')).map(toPriceVersion),
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
    setTokensPerMinute: (id, limit) =>
      writeOne(database, 'UPDATE workspaces SET tokens_per_minute = ? WHERE id = ?', limit, id),
    setSpendLimit: (id, limit) =>
      writeOne(
        database,
        'UPDATE workspaces SET spend_limit_pico_aud = ?, spend_limit_is_soft = ? WHERE id = ?',
        limit?.amount ?? null,
        limit?.isSoft ? 1 : 0,
        id,
      ),
    setBuyer: (id, { name, abn, address, purchaseOrder, email }) =>
      writeOne(
        database,
        `UPDATE workspaces SET buyer_name = ?, buyer_abn = ?, buyer_address = ?, buyer_purchase_order = ?, buyer_email = ?
         WHERE id = ?`,
        name,
        abn,
        address,
        purchaseOrder,
        email,
        id,
      ),
    async addPriceVersions(versions) {
      const ids: (number | undefined)[] = []
      for (let from = 0; from < versions.length; from += PRICES_AT_ONCE) {
        const statements = versions
          .slice(from, from + PRICES_AT_ONCE)
          .map(({ model, workspaceId, prices, effectiveFrom, latest }) => {
            const values = [model, workspaceId, prices && JSON.stringify(prices), effectiveFrom]
            return query(ADD_PRICE, ...values, latest, model, workspaceId ?? '')
          })
        const added = await database.transact({ access: 'write', locks: ['prices'], statements })
        ids.push(...added.map(([row]) => row && Number(row['id'])))
      }
      return ids
    },
  }
}

function toWorkspace(row: Row): Workspace {
  return {
    id: String(row['id']),
    name: String(row['name']),
    requestsPerMinute: optionalNumber(row['requests_per_minute']),
    tokensPerMinute: optionalNumber(row['tokens_per_minute']),
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
      email: optionalText(row['buyer_email']),
    },
  }
}

function toPriceVersion(row: Row): PriceVersion {
  return {
    id: Number(row['id']),
    model: String(row['model']),
    workspaceId: optionalText(row['workspace_id']),
    prices: row['prices'] === null ? null : (JSON.parse(row['prices'] as string) as PriceList),
    effectiveFrom: Number(row['effective_from']),
  }
}

function optionalNumber(value: unknown): number | null {
  return value === null ? null : Number(value)
}

function optionalText(value: unknown): string | null {
  return value === null ? null : (value as string)
}
