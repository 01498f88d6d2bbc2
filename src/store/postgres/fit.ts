import type { ClientBase } from 'pg'
import { databaseFailure } from './failures.ts'
import { timeLimitNames, timeLimits } from './time-limits.ts'

const OLDEST_SERVER = 150_000

interface Server {
  readonly version: string
  readonly encoding: string
  readonly account: string
  /** The names of the time limits in force. */
  readonly limits: string | null
}

/** Throws when this PostgreSQL, or the pooler in front of it, is unsuitable. Changes nothing in it. */
export async function requireFit(client: ClientBase, address: string): Promise<void> {
  const { rows } = await client.query<Server>(
    `SELECT current_setting('server_version_num') AS version, current_setting('server_encoding') AS encoding,
            quote_ident(current_user) AS account,
            (SELECT string_agg(name, ',') FROM unnest($1::text[]) AS name WHERE current_setting(name) <> '0') AS limits`,
    [timeLimitNames],
  )
  const server = rows[0]!
  if (Number(server.version) < OLDEST_SERVER) {
    throw databaseFailure('ERR_DATABASE_OLD', `${address}: Weir needs PostgreSQL 15 or later`)
  }
  if (server.encoding !== 'UTF8') {
    throw databaseFailure(
      'ERR_DATABASE_ENCODING',
      `${address}: the database has the encoding ${server.encoding}; create it with createdb --encoding=UTF8 --template=template0`,
    )
  }
  requireLimits(server, address)
  // A pooler in statement mode refuses the BEGIN and closes the connection.
  await client.query('BEGIN READ ONLY')
  await client.query('COMMIT')
}

/** Without these limits, a stalled replica would block all others. */
function requireLimits({ account, limits }: Server, address: string): void {
  const kept = (limits ?? '').split(',')
  const dropped = Object.entries(timeLimits).filter(([name]) => !kept.includes(name))
  if (dropped.length === 0) return
  const changes = dropped.map(([name, ms]) => `ALTER ROLE ${account} SET ${name} = '${ms / 1000}s'`)
  throw databaseFailure(
    'ERR_DATABASE_POOLER',
    `${address}: the pooler in front of PostgreSQL drops time limits that Weir needs: run ${changes.join('; ')}; then restart the pooler`,
  )
}
