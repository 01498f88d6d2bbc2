import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { query } from '../../src/store/database.ts'
import { openPostgres, requireAnswer } from '../../src/store/postgres/client.ts'
import { killServicesAndPostgres } from '../support/killed-services.ts'
import { runLength } from '../support/long-run.ts'
import { limitWaits, startPgBouncer, withoutPgBouncer, type PgBouncerOptions } from '../support/pgbouncer.ts'
import { startPostgres, type PostgresServer } from '../support/postgres-server.ts'

describe('PgBouncer in front of PostgreSQL', { skip: withoutPgBouncer }, () => {
  let postgres: PostgresServer

  before(async () => {
    postgres = await startPostgres()
  })
  after(() => postgres.remove())

  /** The service and `weir doctor` say the same. */
  async function refused(databaseUrl: string, options: PgBouncerOptions, message: RegExp): Promise<void> {
    const pooler = await startPgBouncer(postgres, options)
    try {
      const url = pooler.behind(databaseUrl)
      const expected = { code: 'ERR_DATABASE_POOLER', message }
      await assert.rejects(openPostgres({ url, connectionsMax: 1 }), expected)
      await assert.rejects(requireAnswer(url), expected)
    } finally {
      await pooler.remove()
    }
  }

  it('is refused if it does not accept the time limits, with the setting to add', async () => {
    await refused(
      await postgres.createDatabase(),
      { mode: 'transaction', ignored: [] },
      /^postgres:[^ ]+: unsupported startup parameter.*: add statement_timeout, lock_timeout, idle_in_transaction_session_timeout to ignore_startup_parameters of PgBouncer$/,
    )
  })

  it('is refused if it drops them, with the command to run', async () => {
    await refused(
      await postgres.createDatabase(),
      { mode: 'session' },
      /^postgres:[^ ]+: the pooler .* drops time limits that Weir needs: run ALTER ROLE weir SET statement_timeout = '60s'; ALTER ROLE weir SET lock_timeout = '4s'; ALTER ROLE weir SET idle_in_transaction_session_timeout = '10s'; then restart the pooler$/,
    )
  })

  it('is refused if it splits transactions over connections', async () => {
    await refused(
      await limitWaits(await postgres.createDatabase()),
      { mode: 'statement' },
      /^postgres:[^ ]+: .*: set pool_mode of PgBouncer to transaction or session$/,
    )
  })

  it('may use another connection for each transaction: services and PostgreSQL are killed, and no row is lost or duplicated', async () => {
    assert.ok((await killServicesAndPostgres(runLength(0, 2), { mode: 'transaction', connections: 4 })) > 0)
  })

  it('may give each client a connection of its own', async () => {
    const pooler = await startPgBouncer(postgres, { mode: 'session' })
    const url = pooler.behind(await limitWaits(await postgres.createDatabase()))
    const database = await openPostgres({ url, connectionsMax: 2 })
    try {
      const statements = [query('SELECT 1 AS one'), query('SELECT 2 AS two')]
      assert.deepEqual(await database.transact({ access: 'read', statements }), [[{ one: 1n }], [{ two: 2n }]])
    } finally {
      await database.close()
      await pooler.remove()
    }
  })
})
