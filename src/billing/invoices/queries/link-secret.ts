import type { LinkSecretStore } from '../invoice-store.ts'
import { readRows, writeOne, type Database } from '../../../store/database.ts'

export function linkSecretQueries(database: Database): LinkSecretStore {
  return {
    async linkSecret() {
      const [row] = await readRows(database, 'SELECT secret FROM link_secret')
      return row && String(row['secret'])
    },
    addLinkSecret: (secret) =>
      writeOne(database, 'INSERT INTO link_secret (slot, secret) VALUES (1, ?) ON CONFLICT DO NOTHING', secret),
    replaceLinkSecret: (secret) =>
      writeOne(
        database,
        'INSERT INTO link_secret (slot, secret) VALUES (1, ?) ON CONFLICT (slot) DO UPDATE SET secret = excluded.secret',
        secret,
      ),
  }
}
