import { RefusedWrite } from '../../core/refused-write.ts'
import type { Statement, Values } from '../database.ts'

/** One call to PostgreSQL. */
export interface Call {
  /** With $1, $2 … for the values. */
  readonly text: string
  readonly values: readonly unknown[]
}

/** The calls of a statement: one for each set of values, or one for all of them as an array for each column. */
export function callsOf({ sql, runs, isForGiven }: Statement): readonly Call[] {
  const text = numbered(sql)
  if (!isForGiven) return runs.map((values) => ({ text, values: values.map(storable) }))
  return runs.length === 0 ? [] : [{ text, values: columnsOf(runs) }]
}

/** No statement has a question mark in a text. */
function numbered(sql: string): string {
  let last = 0
  return sql.replaceAll('?', () => `$${++last}`)
}

/** Arrays as PostgreSQL writes them. The client's own way costs several times as much, and rows are many. */
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

/** The client would write anything else down as text. */
function storable(value: unknown): Storable {
  if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint')
    return value
  throw new RefusedWrite(`a value of type ${typeof value} cannot be stored`)
}
