import { commandForGiven, readRows, type Database, type Row } from './database.ts'
import type { GivenColumn } from './fragments.ts'

/** Copies every table from one database to another, in batches. An interrupted copy can be resumed. */

interface Table {
  readonly name: string
  /** The primary key. Rows are copied in its order, so the last copied row shows where to resume. */
  readonly key: readonly string[]
}

/** A table comes after those that it references. The journal's tables are missing: its rows are settled first, so they are empty. So are the leases, which belong to processes. */
const TABLES: readonly Table[] = [
  { name: 'workspaces', key: ['id'] },
  { name: 'api_keys', key: ['id'] },
  { name: 'people', key: ['id'] },
  { name: 'price_versions', key: ['id'] },
  { name: 'lane_limits', key: ['lane'] },
  { name: 'drained_addresses', key: ['url'] },
  { name: 'link_secret', key: ['slot'] },
  { name: 'audit_log', key: ['id'] },
  { name: 'invoices', key: ['issued_at', 'kind', 'sequence'] },
  { name: 'unfinished_notes', key: ['slot'] },
  { name: 'document_amounts', key: ['number'] },
  { name: 'payments', key: ['number', 'sequence'] },
  { name: 'invoice_emails', key: ['number'] },
  { name: 'alert_events', key: ['id'] },
  { name: 'alert_deliveries', key: ['id'] },
  { name: 'disabled_endpoints', key: ['name'] },
  { name: 'stored_files', key: ['id'] },
  { name: 'batches', key: ['id'] },
  { name: 'batch_ranges', key: ['batch_id', 'first_line'] },
  { name: 'batch_results', key: ['batch_id', 'line'] },
  { name: 'ledger', key: ['position'] },
  { name: 'ledger_refused', key: ['request_id'] },
  { name: 'usage_hours', key: ['workspace_id', 'hour', 'model', 'key_id', 'price_version', 'credit_note'] },
  { name: 'usage_days', key: ['workspace_id', 'day', 'model', 'key_id', 'price_version', 'credit_note'] },
  { name: 'refused_hours', key: ['workspace_id', 'hour', 'key_id', 'code'] },
  { name: 'refused_requests', key: ['request_id'] },
]

const ROWS_IN_SLICE = 1000

/** Counts the rows of each table. */
export async function countRows(database: Database): Promise<Readonly<Record<string, number>>> {
  const counts: Record<string, number> = {}
  for (const { name } of TABLES) {
    const [row] = await readRows(database, `SELECT count(*) AS rows FROM ${name}`)
    counts[name] = Number(row?.['rows'])
  }
  return counts
}

export async function copyTables(from: Database, to: Database, copied: (rows: number) => void): Promise<void> {
  for (const table of TABLES) await copyTable(from, to, table, copied)
}

async function copyTable(from: Database, to: Database, { name, key }: Table, copied: (rows: number) => void) {
  const columns = await columnsOf(from, name)
  const names = columns.map((column) => column.name).join(', ')
  const place = key.join(', ')
  const values = columns.map((column) => to.dialect.givenValue(column.name)).join(', ')
  const insert = `INSERT INTO ${name} (${names}) SELECT ${values} ${to.dialect.fromGiven(columns)}
    WHERE true ON CONFLICT DO NOTHING`
  let [last] = await readRows(
    to,
    `SELECT ${place} FROM ${name} ORDER BY ${key.map((it) => `${it} DESC`).join(', ')} LIMIT 1`,
  )
  if (last) copied(Number((await readRows(to, `SELECT count(*) AS rows FROM ${name}`))[0]?.['rows']))
  for (;;) {
    const after = last ? `WHERE (${place}) > (${key.map(() => '?').join(', ')})` : ''
    const rows: readonly Row[] = await readRows(
      from,
      `SELECT ${names} FROM ${name} ${after} ORDER BY ${place} LIMIT ${ROWS_IN_SLICE}`,
      ...key.flatMap((column) => (last ? [valueOf(last[column])] : [])),
    )
    if (rows.length === 0) return
    const given = rows.map((row) => columns.map((column) => valueOf(row[column.name])))
    await to.transact({ access: 'write', locks: [], statements: [commandForGiven(insert, given)] })
    copied(rows.length)
    last = rows.at(-1)
  }
}

/** Works only on SQLite. */
async function columnsOf(database: Database, table: string): Promise<readonly GivenColumn[]> {
  const rows = await readRows(database, 'SELECT name, type FROM pragma_table_info(?)', table)
  return rows.map(({ name, type }) => ({ name: String(name), type: type === 'INTEGER' ? 'integer' : 'text' }))
}

const valueOf = (value: unknown): string | bigint | null => value as string | bigint | null
