import { RefusedWrite } from '../../shared/refused-write.ts'
import type { Statement, Values } from '../database.ts'

/** One query that is sent to PostgreSQL. */
export interface PostgresCall {
  /** With $1, $2 … for the values. */
  readonly text: string
  readonly values: readonly unknown[]
}

/** The calls of a statement: one for each set of values, or one for all of them as an array for each column. */
export function callsOf({ sql, runs, isForGiven }: Statement): readonly PostgresCall[] {
  const text = numbered(sql)
  if (!isForGiven) return runs.map((values) => ({ text, values: values.map(storable) }))
  return runs.length === 0 ? [] : [{ text, values: columnsOf(runs) }]
}

/** Replaces each ? with a numbered parameter. No statement has a question mark in a literal. */
function numbered(sql: string): string {
  let last = 0
  return sql.replaceAll('?', () => `$${++last}`)
}

/** Formats arrays as PostgreSQL literals. The client's own formatting takes several times as long, and there are many rows. */
function columnsOf(rows: readonly Values[]): readonly string[] {
  return (rows[0] ?? []).map((_, column) => {
    let array = ''
    for (const row of rows) array += `${array === '' ? '{' : ','}${element(storable(row[column]))}`
    return `${array}}`
  })
}

function element(value: Storable): string {
  if (value === null) return 'NULL'
  if (typeof value !== 'string') return String(value)
  return `"${SPECIAL.test(value) ? value.replaceAll(/["\\]/g, '\\$&') : value}"`
}

const SPECIAL = /["\\]/
type Storable = Values[number]

/** The client would convert any other type to text. */
function storable(value: unknown): Storable {
  if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint')
    return value
  throw new RefusedWrite(`a value of type ${typeof value} cannot be stored`)
}
