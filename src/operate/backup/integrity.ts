import type { DatabaseSync } from 'node:sqlite'

/** The first problem in a database, or undefined. Reads all of it. */
export function firstFault(database: DatabaseSync): string | undefined {
  const found = String(database.prepare('PRAGMA integrity_check(1)').get()?.['integrity_check'])
  if (found !== 'ok') return found
  const orphan = database.prepare('PRAGMA foreign_key_check').get()
  return orphan && `a row of ${String(orphan['table'])} refers to a row that does not exist`
}

/** How many rows each table has. */
export function rowCounts(database: DatabaseSync): Readonly<Record<string, number>> {
  const tables = database
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name")
    .all()
  return Object.fromEntries(
    tables.map(({ name }) => [
      String(name),
      Number(database.prepare(`SELECT count(*) AS rows FROM "${String(name)}"`).get()?.['rows']),
    ]),
  )
}

export function sameCounts(one: Readonly<Record<string, number>>, other: Readonly<Record<string, number>>): boolean {
  const names = new Set([...Object.keys(one), ...Object.keys(other)])
  return [...names].every((name) => one[name] === other[name])
}
