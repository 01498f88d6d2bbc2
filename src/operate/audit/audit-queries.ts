import type { AuditEntry, AuditStore } from './audit-store.ts'
import { query, readRows, writeOne, type Database, type Row } from '../../store/database.ts'

export function auditQueries(database: Database): AuditStore {
  return {
    async beginAudit({ at, actor, requestId, action, subject, request, before }) {
      const sql = `INSERT INTO audit_log (at, actor, request_id, action, subject, request, before)
        VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id`
      const [added] = await database.transact({
        access: 'write',
        locks: [],
        statements: [query(sql, at, actor, requestId, action, subject, request, before)],
      })
      return Number(added?.[0]?.['id'])
    },
    endAudit: (id, outcome, after) =>
      writeOne(
        database,
        "UPDATE audit_log SET outcome = ?, after = ? WHERE id = ? AND outcome = 'begun'",
        outcome,
        after,
        id,
      ),
    async auditLog({ before, limit }) {
      const rows =
        before === undefined
          ? await readRows(database, 'SELECT * FROM audit_log ORDER BY id DESC LIMIT ?', limit)
          : await readRows(database, 'SELECT * FROM audit_log WHERE id < ? ORDER BY id DESC LIMIT ?', before, limit)
      return rows.map(toEntry)
    },
  }
}

function toEntry(row: Row): AuditEntry {
  const text = (column: string): string | null => row[column] as string | null
  return {
    id: Number(row['id']),
    at: Number(row['at']),
    actor: text('actor') ?? '',
    requestId: text('request_id') ?? '',
    action: text('action') ?? '',
    subject: text('subject') ?? '',
    request: text('request'),
    before: text('before'),
    after: text('after'),
    outcome: row['outcome'] as AuditEntry['outcome'],
  }
}
