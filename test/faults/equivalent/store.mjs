export default [
  {
    file: 'src/store/sqlite/thread.ts',
    before: 'const id = ++lastId',
    after: 'const id = --lastId',
    why: 'Numbers below zero tell calls apart as well.',
  },
  {
    file: 'src/store/sqlite/thread.ts',
    before: 'let lastId = 0',
    after: 'let lastId = 1',
    why: 'The ids only have to differ from each other.',
  },
  {
    file: 'src/store/database-choice.ts',
    before: "return { database: { ...database, close }, owner: owner ?? '' }",
    after: "return { database: { ...database, close }, owner: owner ?? 'x' }",
    why: 'Only a process that writes a journal has an owner. No journal has either name.',
  },
  {
    file: 'src/store/sqlite/statement-cache.ts',
    before: "if (kept.size > max) kept.delete(kept.keys().next().value ?? '')",
    after: "if (kept.size > max) kept.delete(kept.keys().next().value ?? 'x')",
    why: 'A cache that is over its limit has a first key.',
  },
  {
    file: 'src/store/postgres/migrate.ts',
    before:
      "await client.query(patient(readPostgresStep(step))) await client.query('INSERT INTO schema_steps VALUES ($1)', [taken + index + 1])",
    after:
      "await client.query('INSERT INTO schema_steps VALUES ($1)', [taken + index + 1]) await client.query(patient(readPostgresStep(step)))",
    why: 'Both are in one transaction.',
  },
]
