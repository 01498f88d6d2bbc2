import type { SessionStore, StoredSession } from './session-store.ts'
import { command, query, readRows, writeOne, type Database, type Row } from '../../store/database.ts'

/** More sessions than can exist: PostgreSQL and SQLite have no common syntax for "no limit". */
const ALL = 1_000_000_000

/** Removes all but the newest sessions. */
const removeOldest = (which: string): string => `DELETE FROM console_sessions WHERE id IN
  (SELECT id FROM console_sessions WHERE ${which} ORDER BY id DESC LIMIT ${ALL} OFFSET ?) RETURNING id`

export function sessionQueries(database: Database): SessionStore {
  return {
    async addSession({ kind, hash, owner, keyHash, name, expiresAt }, { ofOwner, ofAll }, now) {
      const [, ofSameOwner = [], ofOthers = []] = await database.transact({
        access: 'write',
        locks: [],
        statements: [
          command('DELETE FROM console_sessions WHERE expires_at <= ?', now),
          query(removeOldest('kind = ? AND owner = ?'), kind, owner, ofOwner - 1),
          query(removeOldest('kind = ?'), kind, ofAll - 1),
          command(
            'INSERT INTO console_sessions (kind, hash, owner, key_hash, name, expires_at) VALUES (?, ?, ?, ?, ?, ?)',
            kind,
            hash,
            owner,
            keyHash,
            name,
            expiresAt,
          ),
        ],
      })
      return ofSameOwner.length + ofOthers.length > 0
    },
    async sessionsByHash(hashes) {
      const sql = `SELECT * FROM console_sessions WHERE kind = 'session' AND hash IN (${database.dialect.selectTexts('?')})`
      return (await readRows(database, sql, JSON.stringify(hashes))).map(toSession)
    },
    removeSession: (hash) => writeOne(database, 'DELETE FROM console_sessions WHERE hash = ?', hash),
    async takeLink(hash) {
      const sql = "DELETE FROM console_sessions WHERE kind = 'link' AND hash = ? RETURNING *"
      const [taken] = await database.transact({ access: 'write', locks: [], statements: [query(sql, hash)] })
      return taken?.[0] && toSession(taken[0])
    },
  }
}

function toSession(row: Row): StoredSession {
  return {
    kind: row['kind'] as StoredSession['kind'],
    hash: String(row['hash']),
    owner: String(row['owner']),
    keyHash: row['key_hash'] as string | null,
    name: String(row['name']),
    expiresAt: Number(row['expires_at']),
  }
}
