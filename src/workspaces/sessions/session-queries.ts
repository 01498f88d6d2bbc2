import type { HeldRole, SessionStore, StoredSession } from './session-store.ts'
import { command, query, readRows, writeOne, type Database, type Row } from '../../store/database.ts'

/** More sessions than can exist: PostgreSQL and SQLite have no common syntax for "no limit". */
const ALL = 1_000_000_000

/** Removes all but the newest sessions. */
const removeOldest = (which: string): string => `DELETE FROM console_sessions WHERE id IN
  (SELECT id FROM console_sessions WHERE ${which} ORDER BY id DESC LIMIT ${ALL} OFFSET ?) RETURNING id`

const SELECT = `SELECT s.*, p.issuer, p.subject, p.name AS person_name, p.email FROM console_sessions s
  LEFT JOIN people p ON p.id = s.person_id`

export function sessionQueries(database: Database): SessionStore {
  return {
    async addSession(session, { ofOwner, ofAll }, now) {
      const { kind, hash, owner, keyHash, name, startedAt, usedAt, expiresAt, address, person, roles } = session
      const [, ofSameOwner = [], ofOthers = []] = await database.transact({
        access: 'write',
        locks: [],
        statements: [
          command('DELETE FROM console_sessions WHERE expires_at <= ?', now),
          // The sessions of people count by person: they must not end those of other members.
          person
            ? query(removeOldest('kind = ? AND person_id = ?'), kind, person.id, ofOwner - 1)
            : query(removeOldest('kind = ? AND owner = ? AND person_id IS NULL'), kind, owner, ofOwner - 1),
          query(removeOldest('kind = ?'), kind, ofAll - 1),
          ...(person
            ? [
                command(
                  `INSERT INTO people (id, issuer, subject, name, email) VALUES (?, ?, ?, ?, ?)
                   ON CONFLICT (id) DO UPDATE SET name = excluded.name, email = excluded.email`,
                  person.id,
                  person.issuer,
                  person.subject,
                  person.name,
                  person.email,
                ),
              ]
            : []),
          command(
            `INSERT INTO console_sessions
               (kind, hash, owner, key_hash, name, started_at, used_at, expires_at, address, person_id, roles)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
            kind,
            hash,
            owner,
            keyHash,
            name,
            startedAt,
            usedAt,
            expiresAt,
            address,
            person?.id ?? null,
            JSON.stringify(roles),
          ),
        ],
      })
      return ofSameOwner.length + ofOthers.length > 0
    },
    async sessionsByHash(hashes) {
      const sql = `${SELECT} WHERE s.kind = 'session' AND s.hash IN (${database.dialect.selectTexts('?')})`
      return (await readRows(database, sql, JSON.stringify(hashes))).map(toSession)
    },
    async sessions({ now, limit, before, name, personId, keyHash }) {
      const conditions: readonly (readonly [sql: string, value: string | number | undefined])[] = [
        ['s.expires_at > ?', now],
        ['s.id < (SELECT max(id) FROM console_sessions WHERE name = ?)', before],
        ['s.name = ?', name],
        ['s.person_id = ?', personId],
        ['s.key_hash = ?', keyHash],
      ]
      const given = conditions.flatMap(([sql, value]) => (value === undefined ? [] : [{ sql, value }]))
      const where = ["s.kind = 'session'", ...given.map(({ sql }) => sql)].join(' AND ')
      const sql = `${SELECT} WHERE ${where} ORDER BY s.id DESC LIMIT ?`
      return (await readRows(database, sql, ...given.map(({ value }) => value), limit)).map(toSession)
    },
    moveSession: (hash, owner) =>
      writeOne(database, 'UPDATE console_sessions SET owner = ? WHERE hash = ?', owner, hash),
    sessionUsed: (hash, at) =>
      writeOne(database, 'UPDATE console_sessions SET used_at = ? WHERE hash = ? AND used_at < ?', at, hash, at),
    removeSession: (hash) => writeOne(database, 'DELETE FROM console_sessions WHERE hash = ?', hash),
    async takeLink(hash) {
      const sql = "DELETE FROM console_sessions WHERE kind = 'link' AND hash = ? RETURNING *"
      const [taken] = await database.transact({ access: 'write', locks: [], statements: [query(sql, hash)] })
      return taken?.[0] && toSession(taken[0])
    },
  }
}

function toSession(row: Row): StoredSession {
  const text = (column: string): string | null => (row[column] ?? null) as string | null
  const personId = text('person_id')
  return {
    kind: row['kind'] as StoredSession['kind'],
    hash: String(row['hash']),
    owner: String(row['owner']),
    keyHash: text('key_hash'),
    name: String(row['name']),
    startedAt: Number(row['started_at']),
    usedAt: Number(row['used_at']),
    expiresAt: Number(row['expires_at']),
    address: text('address'),
    person:
      personId === null
        ? null
        : {
            id: personId,
            issuer: text('issuer') ?? '',
            subject: text('subject') ?? '',
            name: text('person_name'),
            email: text('email'),
          },
    roles: JSON.parse(String(row['roles'])) as readonly HeldRole[],
  }
}
