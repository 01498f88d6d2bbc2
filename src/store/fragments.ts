/**
 * Every piece of SQL that differs between databases. All other SQL must run unchanged on SQLite and on PostgreSQL 15,
 * which needs some care:
 *
 * - a subquery in FROM has a name, and `ON CONFLICT DO UPDATE` says which columns conflict;
 * - conditions are not numbers: use `CASE` or `FILTER`;
 * - a value that may be missing is left out of the text, since `? IS NULL` has no type;
 * - texts compare by their bytes, so columns of text need that collation.
 */
export interface SqlDialect {
  /** A value of the rows that the caller gives to `commandForGiven` or `queryForGiven`. Each is named once, in the order of the columns. */
  givenValue(column: string): string
  /** The FROM of such a statement, with a subquery for each row if there is one. */
  fromGiven(columns: readonly GivenColumn[], subquery?: string): string
  /** The larger of two values. */
  greatest(one: string, other: string): string
  /** A select list of the texts in a JSON array. */
  selectTexts(array: string): string
  /** At the end of a subquery that chooses a row to claim: leaves out rows that other processes are claiming. */
  readonly skipLocked: string
  /** At the end of a query whose rows must not change before the transaction ends. */
  readonly forShare: string
  /** A sum of amounts of pico-AUD as `amount_high` (billions) and `amount_low`, which each fit into 64 bits. */
  sumOfAmounts(column: string): string
}

export interface GivenColumn {
  readonly name: string
  readonly type: 'text' | 'integer'
}

// Ten million dollars in pico-AUD do not fit into 64 bits, and SQLite has no larger integers.
const sumOfAmounts = (column: string): string =>
  `coalesce(sum(${column} / 1000000000), 0) AS amount_high, coalesce(sum(${column} % 1000000000), 0) AS amount_low`

export const sqliteDialect: SqlDialect = {
  // The statement runs once for each row.
  givenValue: () => '?',
  fromGiven: (_columns, subquery) => (subquery === undefined ? '' : `FROM ${subquery}`),
  greatest: (one, other) => `max(${one}, ${other})`,
  selectTexts: (array) => `SELECT value FROM json_each(${array})`,
  // There is one writer.
  skipLocked: '',
  forShare: '',
  sumOfAmounts,
}

export const postgresDialect: SqlDialect = {
  // All rows at once, as one array for each column.
  givenValue: (column) => `given.${column}`,
  fromGiven(columns, subquery) {
    const arrays = columns.map(({ type }) => (type === 'text' ? '?::text[]' : '?::bigint[]'))
    const rows = `FROM unnest(${arrays.join(', ')}) AS given (${columns.map(({ name }) => name).join(', ')})`
    return subquery === undefined ? rows : `${rows} CROSS JOIN LATERAL ${subquery}`
  },
  greatest: (one, other) => `greatest(${one}, ${other})`,
  selectTexts: (array) => `SELECT value FROM json_array_elements_text(${array}::json)`,
  skipLocked: 'FOR UPDATE SKIP LOCKED',
  forShare: 'FOR SHARE',
  sumOfAmounts,
}
