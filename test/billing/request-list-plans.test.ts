import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { recentRequests } from '../../src/billing/usage/queries/recent-requests.ts'
import type { RecentQuery } from '../../src/billing/usage/report-store.ts'
import { query, writeOne, type Database, type Statement } from '../../src/store/database.ts'
import { storeOn } from '../../src/store/open.ts'
import { openPostgres } from '../../src/store/postgres/client.ts'
import { openSqliteHere } from '../../src/store/sqlite/in-this-thread.ts'
import { sampleRow } from '../support/ledger-samples.ts'
import { startPostgres } from '../support/postgres-server.ts'

/** A page of requests must cost the same over 50 million rows as over a thousand. The plans of the queries show that. */

const ROWS = 6000
const SECOND_MS = 1000
const HOURS = 3

interface Planned {
  readonly database: Database
  /** The lines of the plan of a statement. */
  plan(statement: Statement): Promise<readonly string[]>
}

const databases: Readonly<Record<string, (t: TestContext) => Promise<Planned>>> = {
  async SQLite(t) {
    const dataDir = mkdtempSync(join(tmpdir(), 'weir-plans-'))
    const database = openSqliteHere({ dataDir, exclusive: false })
    t.after(async () => {
      await database.close()
      rmSync(dataDir, { recursive: true, force: true })
    })
    await fill(storeOn(database, 'owner'))
    return { database, plan: async (statement) => explained(database, 'EXPLAIN QUERY PLAN', 'detail', statement) }
  },
  async PostgreSQL(t) {
    const server = await startPostgres()
    const database = await openPostgres({ url: await server.createDatabase(), connectionsMax: 1 })
    t.after(async () => {
      await database.close()
      await server.remove()
    })
    await fill(storeOn(database, 'owner'))
    // To scan and sort so few rows is cheap. This shows whether an index can give them in their order.
    for (const what of ['seqscan', 'sort', 'bitmapscan']) await writeOne(database, `SET enable_${what} = off`)
    return { database, plan: async (statement) => explained(database, 'EXPLAIN', 'QUERY PLAN', statement) }
  },
}

async function explained(database: Database, how: string, column: string, { sql, runs }: Statement) {
  const [rows = []] = await database.transact({ access: 'read', statements: [query(`${how} ${sql}`, ...runs[0]!)] })
  return rows.map((row) => row[column] as string)
}

/** Two workspaces, three keys and three models of each. One request in twenty fails, with one of three codes. */
async function fill(store: Pick<ReturnType<typeof storeOn>, 'addRows'>): Promise<void> {
  const codes = ['upstream_error', 'upstream_timeout', 'model_overloaded'] as const
  const rows = Array.from({ length: ROWS }, (_, index) => {
    const isFailed = index % 20 === 0
    return sampleRow(`request-${String(index).padStart(9, '0')}`, {
      workspaceId: `ws_${index % 2}`,
      keyId: `key_${index % 2}_${index % 3}`,
      model: `meta/${index % 3}`,
      settledAt: index * HOURS * ((3600 * SECOND_MS) / ROWS),
      outcome: isFailed ? 'engine_failed' : 'completed',
      httpStatus: isFailed ? 502 : 200,
      errorCode: isFailed ? codes[index % 3]! : null,
    })
  })
  for (let from = 0; from < ROWS; from += 1000) await store.addRows(rows.slice(from, from + 1000))
}

const all = { from: 0, to: 1e13, limit: 25 }
const middle = { settledAt: 5000 * SECOND_MS, requestId: 'request-000003000' }
const failures = { outcome: 'failed' } as const
const code = { errorCode: 'upstream_timeout' }
const ofWorkspace = { workspaceId: 'ws_0' }
const ofKey = { ...ofWorkspace, keyId: 'key_0_1' }
const model = { model: 'meta/1' }

/** Every combination that the pages offer, and the index that has to answer it. */
const lists: readonly (readonly [name: string, index: string, selection: Partial<RecentQuery>])[] = [
  ['of all', 'ledger_by_time', {}],
  ['of all that completed', 'ledger_by_time', { outcome: 'completed' }],
  ['of all with status 200', 'ledger_by_time', { httpStatus: 200 }],
  ['of a model', 'ledger_by_model', model],
  ['of a model with status 200', 'ledger_by_model', { ...model, httpStatus: 200 }],
  ['of a workspace', 'ledger_by_workspace', ofWorkspace],
  ['of a workspace, with status 200', 'ledger_by_workspace', { ...ofWorkspace, httpStatus: 200 }],
  ['of a workspace that completed', 'ledger_by_workspace', { ...ofWorkspace, outcome: 'completed' }],
  ['of a key', 'ledger_by_workspace', ofKey],
  ['of a model of a workspace', 'ledger_by_workspace', { ...ofWorkspace, ...model }],
  ['of a key and a model', 'ledger_by_workspace', { ...ofKey, ...model }],
  ['that failed', 'ledger_failed', failures],
  ['that failed in one way', 'ledger_failed', { outcome: 'engine_failed' }],
  ['that failed with a status', 'ledger_failed_with_status', { httpStatus: 502 }],
  ['of a model that failed with a status', 'ledger_failed_with_status', { ...model, httpStatus: 502 }],
  ['of a model that failed', 'ledger_failed', { ...failures, ...model }],
  ['that failed with a code', 'ledger_failed_with_code', code],
  ['that failed with a code and a status', 'ledger_failed_with_code', { ...code, httpStatus: 502 }],
  ['of a model that failed with a code', 'ledger_failed_with_code', { ...code, ...model }],
  ['of a workspace that failed', 'ledger_failed_of_workspace', { ...failures, ...ofWorkspace }],
  ['of a workspace with a status', 'ledger_failed_of_workspace', { ...ofWorkspace, httpStatus: 502 }],
  ['of a key that failed', 'ledger_failed_of_workspace', { ...failures, ...ofKey }],
  ['of a workspace with a code', 'ledger_failed_by_code', { ...code, ...ofWorkspace }],
  ['of a key with a code', 'ledger_failed_by_code', { ...code, ...ofKey }],
]

for (const [name, open] of Object.entries(databases)) {
  describe(`a page of requests on ${name}`, () => {
    it('is read from an index in its order, whatever its filters are', async (t) => {
      const { database, plan } = await open(t)
      for (const [what, index, filters] of lists) {
        for (const [where, place] of Object.entries({
          first: {},
          later: { before: middle },
          'of a day': { from: 1000 * SECOND_MS, to: 9000 * SECOND_MS },
        })) {
          const asked: Statement[] = []
          const watched: Database = {
            ...database,
            transact(transaction) {
              asked.push(...transaction.statements)
              return database.transact(transaction)
            },
          }
          const { rows } = await recentRequests(watched, { workspaceId: undefined, ...all, ...filters, ...place })
          assert.equal(rows.length, 25, `${what}, ${where}`)
          const ledger = asked.filter(({ sql }) => sql.includes('FROM ledger'))
          for (const statement of ledger) {
            const lines = await plan(statement)
            const message = `${what}, ${where}:\n${statement.sql}\n${lines.join('\n')}`
            assert.match(lines.join('\n'), new RegExp(`${index}\\b(?!_)`), message)
            // Neither a scan of the table, nor rows that are collected and then sorted.
            assert.doesNotMatch(lines.join('\n'), /Seq Scan on ledger|Bitmap|\bSort\b|SCAN ledger|TEMP B-TREE/, message)
            assert.match(statement.sql, /LIMIT \?$|LIMIT 1 OFFSET (4999|499)$/, message)
            // PostgreSQL took 12 s for a page of a rare key among 50 million rows that had only the comparison of rows.
            assert.match(lines.join('\n'), /settled_at <=? '|settled_at<\?/, message)
          }
          assert.ok(ledger.length > 0)
        }
      }
    })
  })
}
