import type { DatabaseSync } from 'node:sqlite'

/** How many requests were noted and never settled, whoever owns them, as another program sees the database. */
export function openIntents(database: DatabaseSync): number {
  const sql = `SELECT count(*) AS count FROM intents, json_each(intents.requests) AS request
    WHERE NOT EXISTS (SELECT 1 FROM ledger WHERE request_id = request.value ->> 0)`
  return Number(database.prepare(sql).get()?.['count'])
}
