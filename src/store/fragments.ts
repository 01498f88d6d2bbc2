/**
 * Every piece of SQL that databases word differently. All other SQL has to run on SQLite and on PostgreSQL 15 as
 * it is, which needs some care:
 *
 * - a subquery in FROM has a name, and `ON CONFLICT DO UPDATE` says which columns conflict;
 * - conditions are not numbers: use `CASE` or `FILTER`;
 * - a value that may be missing is left out of the text, since `? IS NULL` has no type;
 * - texts compare by their bytes, so columns of text need that collation.
 */
export interface SqlDialect {
  /** The larger of two values. */
  greatest(one: string, other: string): string
  /** A select list of the texts in a JSON array. */
  selectTexts(array: string): string
  /** A sum of amounts of pico-AUD as `amount_high` (billions) and `amount_low`, which each fit into 64 bits. */
  sumOfAmounts(column: string): string
}

export const sqliteDialect: SqlDialect = {
  greatest: (one, other) => `max(${one}, ${other})`,
  selectTexts: (array) => `SELECT value FROM json_each(${array})`,
  // Ten million dollars are more pico-AUD than 64 bits hold, and SQLite knows no larger number.
  sumOfAmounts: (column) =>
    `coalesce(sum(${column} / 1000000000), 0) AS amount_high, coalesce(sum(${column} % 1000000000), 0) AS amount_low`,
}
