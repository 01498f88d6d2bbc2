import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it, type TestContext } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { Pool, type PoolClient } from 'pg'
import { query, readRows, type Statement } from '../../src/store/database.ts'
import { openPostgres, requireAnswer } from '../../src/store/postgres/client.ts'
import { openConnections, type Connections } from '../../src/store/postgres/connections.ts'
import { lockCall } from '../../src/store/postgres/locks.ts'
import { startPostgres, type PostgresServer } from '../support/postgres-server.ts'
import { tcpProxy, type TcpProxy } from '../support/tcp-proxy.ts'
import { eventually, gate, within } from '../support/waiting.ts'

/** What the service does with a connection that does not answer, after so long. */
const ANSWER_MS = 65_000
const CONNECT_MS = 5000
const WAITING_MAX = 1000

const pidOf = async (client: PoolClient): Promise<bigint> => {
  const { rows } = await client.query<{ pid: bigint }>('SELECT pg_backend_pid() AS pid')
  return rows[0]!.pid
}

describe('connections to PostgreSQL', () => {
  let server: PostgresServer
  let url: string
  let reported: string[]
  let ends: (() => unknown)[]

  before(async () => {
    server = await startPostgres()
    url = await server.createDatabase()
  })
  after(() => server.remove())
  beforeEach(() => {
    reported = []
    ends = []
  })

  async function open(t: TestContext, address = url, connectionsMax = 1): Promise<Connections> {
    const events = {
      ended: (error: NodeJS.ErrnoException) => reported.push(`away: ${error.code}`),
      replaced: () => reported.push('back'),
      lost: () => reported.push('lost'),
    }
    const connections = await openConnections({ url: address, connectionsMax, events, prepare: async () => {} })
    t.after(async () => {
      for (const end of ends) end()
      await connections.close()
    })
    return connections
  }

  /** Holds a connection until it ends. */
  async function busy(connections: Connections): Promise<{ end(): Promise<void> }> {
    const [started, work] = [gate(), gate()]
    const using = connections.use(() => {
      started.open()
      return work.opened
    })
    await started.opened
    ends.push(work.open)
    return {
      end() {
        work.open()
        return using
      },
    }
  }

  async function throughProxy(t: TestContext): Promise<{ proxy: TcpProxy; address: string }> {
    const proxy = await tcpProxy(server.port)
    t.after(() => proxy.close())
    return { proxy, address: url.replace(`:${server.port}/`, `:${proxy.port}/`) }
  }

  it('are dropped with their transaction when they do not answer in time, and PostgreSQL counts as unreachable', async (t) => {
    const { proxy, address } = await throughProxy(t)
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const connections = await open(t, address)
    const before = await connections.use(pidOf)
    const asked = gate()
    const answer = connections.use(async (client) => {
      await client.query('BEGIN')
      proxy.blackHole(true)
      const late = client.query('SELECT 1')
      asked.open()
      await late
    })
    await asked.opened
    t.mock.timers.tick(ANSWER_MS - 1)
    assert.ok(connections.isUp())
    t.mock.timers.tick(1)
    await assert.rejects(answer, { code: 'ERR_DATABASE_AWAY' })
    assert.ok(!connections.isUp())
    await assert.rejects(connections.use(pidOf), { code: 'ERR_DATABASE_AWAY' })
    proxy.blackHole(false)
    t.mock.timers.tick(500)
    t.mock.timers.reset()
    await eventually('it is back', connections.isUp)
    assert.deepEqual(reported, ['away: ERR_DATABASE_AWAY', 'back'])
    assert.notEqual(await connections.use(pidOf), before)
  })

  it('are dropped after a failure that PostgreSQL did not report, whatever their state', async (t) => {
    const connections = await open(t)
    const pid = await connections.use(pidOf)
    const failing = connections.use(async (client) => {
      await client.query('BEGIN')
      throw new Error('Query read timeout')
    })
    await assert.rejects(failing, { code: 'ERR_DATABASE_AWAY' })
    await eventually('it is back', connections.isUp)
    assert.notEqual(await connections.use(pidOf), pid)
  })

  it('have no transaction open after PostgreSQL has timed out a statement', async (t) => {
    const database = await openPostgres({ url, connectionsMax: 1 })
    t.after(() => database.close())
    const other = await open(t)
    for (const limit of ['statement_timeout', 'lock_timeout']) {
      const statements = [query(`SET LOCAL ${limit} = 50`), query('SELECT pg_advisory_xact_lock(1)')]
      const [locked, over] = [gate(), gate()]
      ends.push(over.open)
      const locking = other.use(async (client) => {
        await client.query('BEGIN; SELECT pg_advisory_xact_lock(1)')
        locked.open()
        await over.opened
        await client.query('ROLLBACK')
      })
      await locked.opened
      await assert.rejects(database.transact({ access: 'write', locks: [], statements }), {
        message: /due to \w+ timeout/,
      })
      over.open()
      await locking
      const [row] = await readRows(database, 'SELECT now() = statement_timestamp() AS is_alone')
      assert.deepEqual(row, { is_alone: 't' })
      assert.ok(database.isUp())
    }
  })

  it('are kept after a failure that PostgreSQL itself reports', async (t) => {
    const connections = await open(t)
    const pid = await connections.use(pidOf)
    await assert.rejects(connections.use((client) => client.query('SELECT 1/0')))
    assert.equal(await connections.use(pidOf), pid)
    assert.ok(connections.isUp())
    assert.deepEqual(reported, [])
  })

  it('may all be in use for a while: waiting calls are refused in time, and PostgreSQL does not count as unreachable', async (t) => {
    const connections = await open(t)
    const using = await busy(connections)
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const refused = assert.rejects(connections.use(pidOf), { code: 'ERR_DATABASE_BUSY', message: /all 1 connections/ })
    t.mock.timers.tick(CONNECT_MS)
    await refused
    t.mock.timers.reset()
    assert.ok(connections.isUp())
    await using.end()
    await connections.use(pidOf)
    assert.deepEqual(reported, [])
  })

  it('have a limit on how many callers wait for one', async (t) => {
    const connections = await open(t)
    const using = await busy(connections)
    const waiting = Array.from({ length: WAITING_MAX }, () => connections.use(async () => {}))
    await assert.rejects(connections.use(pidOf), { code: 'ERR_DATABASE_BUSY' })
    assert.ok(connections.isUp())
    await Promise.all([using.end(), ...waiting])
    assert.deepEqual(reported, [])
  })

  it('are ended after a minute without work, and not before', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const connections = await open(t)
    const pid = await connections.use(pidOf)
    t.mock.timers.tick(59_999)
    assert.equal(await connections.use(pidOf), pid)
    t.mock.timers.tick(60_000)
    assert.notEqual(await connections.use(pidOf), pid)
    t.mock.timers.reset()
    assert.deepEqual(reported, [])
  })

  it('are given up at the start after five seconds, if the server accepts them and does not answer', async (t) => {
    const { proxy, address } = await throughProxy(t)
    proxy.blackHole(true)
    t.mock.timers.enable({ apis: ['setTimeout'] })
    let isOver = false
    const refused = assert
      .rejects(openConnections({ url: address, connectionsMax: 1, prepare: async () => {} }), {
        code: 'ERR_DATABASE_AWAY',
      })
      .then(() => (isOver = true))
    t.mock.timers.tick(CONNECT_MS - 1)
    await setImmediate()
    assert.ok(!isOver)
    t.mock.timers.tick(1)
    t.mock.timers.reset()
    await within(5000, 'they are given up', refused)
  })

  it('may end in the middle of a transaction: only its caller gets the error', async (t) => {
    const { proxy, address } = await throughProxy(t)
    const connections = await open(t, address)
    const cut = connections.use(async (client) => {
      await client.query('BEGIN')
      const asked = client.query('SELECT pg_sleep(60)')
      proxy.cut()
      await asked
    })
    await assert.rejects(cut, { code: 'ERR_DATABASE_AWAY' })
    await eventually('it is back', () => connections.isUp())
    assert.deepEqual(reported, ['away: ERR_DATABASE_AWAY', 'back'])
  })

  it('have no transaction open after they waited too long for a lock', async (t) => {
    const database = await openPostgres({ url, connectionsMax: 1 })
    t.after(() => database.close())
    const transact = (...statements: Statement[]) => database.transact({ access: 'write', locks: ['keys'], statements })
    await transact(query("SELECT set_config('lock_timeout', '1', false)"))
    const other = await open(t)
    await other.use(async (client) => {
      await client.query(`BEGIN; ${lockCall('keys')}`)
      await assert.rejects(transact(), /lock timeout/)
      await client.query('ROLLBACK')
    })
    await transact()
  })

  it('have the time limits of the service, and are closed once it is known that PostgreSQL answers', async (t) => {
    const limits = ['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout']
    const connections = await open(t)
    const { rows } = await connections.use((client) =>
      client.query(`SELECT ${limits.map((name) => `current_setting('${name}') AS ${name}`).join(', ')}`),
    )
    const [statement, lock, idle] = limits
    assert.deepEqual(rows, [{ [statement!]: '1min', [lock!]: '4s', [idle!]: '10s' }])

    await requireAnswer(url)
    const count =
      "SELECT count(*) AS number FROM pg_stat_activity WHERE application_name = 'weir' AND datname = current_database()"
    await eventually('no other connection is left', async () => {
      const found = await connections.use((client) => client.query<{ number: bigint }>(count))
      return found.rows[0]?.number === 1n
    })
  })

  it('take locks in one order, in whichever a transaction names them, so that two never wait for each other', async (t) => {
    const database = await openPostgres({ url, connectionsMax: 1 })
    t.after(() => database.close())
    const others = await open(t)
    await others.use(async (client) => {
      await client.query(`BEGIN; ${lockCall('keys')}`)
      const waiting = database.transact({
        access: 'write',
        locks: ['usage_sums', 'keys'],
        statements: [query('SELECT 1 AS one')],
      })
      const counts = `SELECT count(*) FILTER (WHERE granted) AS taken, count(*) FILTER (WHERE NOT granted) AS awaited
        FROM pg_locks WHERE locktype = 'advisory'`
      let found: unknown
      await eventually('it waits', async () => {
        const [row] = (await client.query<{ awaited: bigint }>(counts)).rows
        found = row
        return row?.awaited === 1n
      })
      assert.deepEqual(found, { taken: 1n, awaited: 1n }, 'it has not taken another lock meanwhile')
      await client.query('ROLLBACK')
      await waiting
    })
  })

  it('write durably and read one snapshot, whatever the default of the server', async (t) => {
    const database = await openPostgres({ url: `${url}?options=-csynchronous_commit%3Doff`, connectionsMax: 1 })
    t.after(() => database.close())
    const settings = query(`SELECT current_setting('synchronous_commit') AS commit,
      current_setting('transaction_isolation') AS isolation, current_setting('transaction_read_only') AS read_only`)
    const inTransaction = (access: 'read' | 'write') =>
      database.transact({ access, locks: [], statements: [settings, settings] })
    const written = { commit: 'on', isolation: 'read committed', read_only: 'off' }
    assert.deepEqual(await inTransaction('write'), [[written], [written]])
    const read = { commit: 'off', isolation: 'repeatable read', read_only: 'on' }
    assert.deepEqual(await inTransaction('read'), [[read], [read]])
  })

  it('detect once that the server has ended while they are idle', async (t) => {
    const { proxy, address } = await throughProxy(t)
    const connections = await open(t, address, 2)
    const both = [await busy(connections), await busy(connections)]
    for (const one of both) await one.end()
    proxy.cut()
    await eventually('it is away and back', () => reported.length === 2)
    assert.deepEqual(reported, ['away: ERR_DATABASE_AWAY', 'back'])
    await connections.use(pidOf)
  })

  it('refuse work if they were closed while the server is unreachable', async (t) => {
    const { proxy, address } = await throughProxy(t)
    const connections = await open(t, address)
    await proxy.refuse()
    await eventually('it is away', () => !connections.isUp())
    await connections.close()
    assert.deepEqual(reported, ['away: ERR_DATABASE_AWAY'])
    await assert.rejects(connections.use(pidOf), /the store is closed/)
  })

  it('neither report nor poll any more if they were closed during a poll', async (t) => {
    for (const end of ['resolve', 'reject'] as const) {
      reported = []
      // Before a connection has a timer that only the real clearTimeout ends: it would keep this process for a minute.
      t.mock.timers.enable({ apis: ['setTimeout'] })
      const connections = await open(t)
      const answer = Promise.withResolvers<void>()
      const polls = t.mock.method(Pool.prototype, 'query', () => answer.promise)
      await assert.rejects(connections.use(() => Promise.reject(new Error('Query read timeout'))))
      t.mock.timers.tick(499)
      assert.equal(polls.mock.callCount(), 0)
      t.mock.timers.tick(1)
      assert.equal(polls.mock.callCount(), 1)
      await connections.close()
      answer[end]()
      await setImmediate()
      t.mock.timers.tick(500)
      assert.deepEqual([reported, polls.mock.callCount()], [['away: ERR_DATABASE_AWAY'], 1])
      polls.mock.restore()
      t.mock.timers.reset()
    }
  })

  it('do not poll any more if they were closed before', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const connections = await open(t)
    const polls = t.mock.method(Pool.prototype, 'query', () => Promise.resolve())
    await assert.rejects(connections.use(() => Promise.reject(new Error('Query read timeout'))))
    await connections.close()
    t.mock.timers.tick(500)
    await setImmediate()
    assert.deepEqual([reported, polls.mock.callCount()], [['away: ERR_DATABASE_AWAY'], 0])
    polls.mock.restore()
    t.mock.timers.reset()
  })

  it('are all closed if their preparation fails, whoever refuses it', async () => {
    const away = () => Promise.reject(new Error('not fit'))
    const refused = openConnections({ url, connectionsMax: 1, prepare: away })
    await assert.rejects(refused, { code: 'ERR_DATABASE_AWAY', message: /not fit/ })
    const failing = (client: PoolClient): Promise<void> => client.query('SELECT 1/0').then(() => {})
    await assert.rejects(openConnections({ url, connectionsMax: 1, prepare: failing }), /division by zero/)
    const count = async (client: PoolClient): Promise<bigint> =>
      (await client.query<{ count: bigint }>("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'weir'"))
        .rows[0]!.count
    const connections = await openConnections({ url, connectionsMax: 1, prepare: async () => {} })
    try {
      await eventually('only this one is left', async () => (await connections.use(count)) === 1n)
    } finally {
      await connections.close()
    }
  })

  it('return integers as bigint, also sums, and everything else as text', async (t) => {
    const connections = await open(t)
    const { rows } = await connections.use((client) =>
      client.query(`SELECT 1::int2 AS small, 2::int4 AS middle, 9007199254740993::int8 AS large,
        sum(3::int8) AS sum, true AS truth, 1.5::float8 AS real`),
    )
    assert.deepEqual(
      { ...rows[0] },
      { small: 1n, middle: 2n, large: 9007199254740993n, sum: 3n, truth: 't', real: '1.5' },
    )
  })
})
