import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { command, query, readRows } from '../../src/store/database.ts'
import { openPostgres } from '../../src/store/postgres/client.ts'
import { startPostgres, type PostgresServer } from '../support/postgres-server.ts'

describe('PostgreSQL with TLS', () => {
  let server: PostgresServer
  let url: string
  before(async () => {
    server = await startPostgres({ tls: '127.0.0.1' })
    url = await server.createDatabase()
  })
  after(() => server.remove())

  const open = (address: string) => openPostgres({ url: address, connectionsMax: 2 })

  it('is reached through TLS when it has the given certificate, and transactions work there', async () => {
    const database = await open(`${url}?sslmode=verify-full&sslrootcert=${server.certificate}`)
    try {
      const [row] = await readRows(
        database,
        'SELECT CASE WHEN ssl THEN version END AS version FROM pg_stat_ssl WHERE pid = pg_backend_pid()',
      )
      assert.match(String(row?.['version']), /^TLSv1\.[23]$/)
      const [, rows] = await database.transact({
        access: 'write',
        locks: ['keys'],
        statements: [command("INSERT INTO link_secret VALUES (1, 'x')"), query('SELECT secret FROM link_secret')],
      })
      assert.deepEqual(rows, [{ secret: 'x' }])
    } finally {
      await database.close()
    }
  })

  it('is refused when its certificate is not trusted, or is for another name', async () => {
    await assert.rejects(open(`${url}?sslmode=verify-full`), {
      code: 'ERR_DATABASE_CERTIFICATE',
      message:
        /^postgres:\S+: the certificate of PostgreSQL is not trusted \(self-signed certificate.*\): add sslrootcert=FILE/,
    })
    const elsewhere = url.replace('127.0.0.1', 'localhost')
    await assert.rejects(open(`${elsewhere}?sslmode=verify-full&sslrootcert=${server.certificate}`), {
      code: 'ERR_DATABASE_CERTIFICATE',
      message: /Hostname\/IP does not match certificate's altnames/,
    })
  })

  it('is refused with the name of a missing file', async () => {
    await assert.rejects(open(`${url}?sslmode=verify-full&sslrootcert=/nowhere/ca.pem`), {
      code: 'ERR_DATABASE_FILE',
      message: /^postgres:\S+: \/nowhere\/ca\.pem does not exist: correct sslrootcert/,
    })
  })
})
