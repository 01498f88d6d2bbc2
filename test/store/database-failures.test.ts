import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { RefusedWrite } from '../../src/shared/refused-write.ts'
import { postgresDialect } from '../../src/store/fragments.ts'
import * as postgres from '../../src/store/postgres/failures.ts'
import { lockCall } from '../../src/store/postgres/locks.ts'
import { callsOf } from '../../src/store/postgres/statements.ts'
import * as sqlite from '../../src/store/sqlite/failures.ts'
import { refusesValues } from '../../src/store/sqlite/refused-values.ts'

const error = (message: string, properties: object = {}): Error => Object.assign(new Error(message), properties)
const codeOf = (it: Error): string | undefined => (it as NodeJS.ErrnoException).code

describe('an error of PostgreSQL', () => {
  const explained = (code: string | undefined, message = 'reason'): Error =>
    postgres.explainPostgresError(error(message, { code }), 'address')

  it('shows whether PostgreSQL is unreachable: without a state, 08, 57P and 25P03', () => {
    for (const code of [undefined, 'ECONNREFUSED', '08006', '57P01', '25P03'])
      assert.ok(postgres.isAway(error('x', { code })), code)
    for (const code of ['57014', '55P03', '25P02', '23505', '40001', '53300', '28P01', '00000'])
      assert.ok(!postgres.isAway(error('x', { code })), code)
    assert.ok(!postgres.isAway(new RefusedWrite('x')))
  })

  it('is a permanent refusal if it is about values: 22, 23 and 54', () => {
    for (const code of ['22003', '23505', '54000']) {
      const refused = explained(code)
      assert.ok(refused instanceof RefusedWrite, code)
      assert.equal(refused.message, 'reason')
    }
    const known = new RefusedWrite('known')
    assert.equal(postgres.explainPostgresError(known, 'address'), known)
    for (const code of ['40001', '57014', '12200']) assert.ok(!(explained(code) instanceof RefusedWrite), code)
  })

  it('is explained with advice, and a code of its own', () => {
    const away = (reason: string): string =>
      `PostgreSQL does not answer (${reason}): start it, or correct database or WEIR_DATABASE_URL`
    const untrusted = (reason: string): string =>
      `the certificate of PostgreSQL is not trusted (${reason}): add sslrootcert=FILE with the certificate of its authority to the address, or correct its host`
    const refusedLogin =
      'PostgreSQL refuses the login (reason): correct the user and password in database or WEIR_DATABASE_URL'
    const limits = 'statement_timeout, lock_timeout, idle_in_transaction_session_timeout'
    const known: readonly (readonly [object, string, string])[] = [
      [{ code: '28P01' }, 'ERR_DATABASE_LOGIN', refusedLogin],
      [{ code: '28000' }, 'ERR_DATABASE_LOGIN', refusedLogin],
      [{ code: '3D000' }, 'ERR_DATABASE_MISSING', `reason: create it with createdb, owned by Weir's user`],
      [
        { code: '42501' },
        'ERR_DATABASE_RIGHTS',
        `reason: make Weir's user the owner of the database (ALTER DATABASE … OWNER TO …)`,
      ],
      [
        { code: '53300' },
        'ERR_DATABASE_FULL',
        'reason: raise max_connections of PostgreSQL (a service needs up to 12)',
      ],
      [
        { code: '08P01', message: 'unsupported startup parameter: x' },
        'ERR_DATABASE_POOLER',
        `unsupported startup parameter: x: add ${limits} to ignore_startup_parameters of PgBouncer`,
      ],
      [
        { code: '08P01', message: 'not in statement pooling mode' },
        'ERR_DATABASE_POOLER',
        'not in statement pooling mode: set pool_mode of PgBouncer to transaction or session',
      ],
      [{ code: '08P01' }, 'ERR_DATABASE_AWAY', away('reason')],
      [{ code: '08006', message: 'startup parameter' }, 'ERR_DATABASE_AWAY', away('startup parameter')],
      [{ code: '08006', message: 'statement pooling' }, 'ERR_DATABASE_AWAY', away('statement pooling')],
      [{ code: 'CERT_HAS_EXPIRED' }, 'ERR_DATABASE_CERTIFICATE', untrusted('reason')],
      [{ code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' }, 'ERR_DATABASE_CERTIFICATE', untrusted('reason')],
      [
        { code: 'ENOENT', path: '/key' },
        'ERR_DATABASE_FILE',
        '/key does not exist: correct sslrootcert, sslcert or sslkey',
      ],
      [{ code: 'ENOENT' }, 'ERR_DATABASE_AWAY', away('reason')],
      [{ code: 'ECONNREFUSED', path: '/socket' }, 'ERR_DATABASE_AWAY', away('reason')],
      [{}, 'ERR_DATABASE_AWAY', away('reason')],
    ]
    for (const [properties, code, text] of known) {
      const cause = error('reason', properties)
      const it = postgres.explainPostgresError(cause, 'address')
      assert.deepEqual([codeOf(it), it.message, it.cause], [code, `address: ${text}`, cause])
    }
  })

  it('is passed on unchanged if it is explained already, or about a statement', () => {
    for (const it of [error('x', { code: 'ERR_DATABASE_BUSY' }), error('x', { code: '40001' })])
      assert.equal(postgres.explainPostgresError(it, 'address'), it)
    assert.equal(postgres.explainPostgresError('text', 'address').message.includes('(text)'), true)
  })

  it('has the reason of its first address, if it has none of its own', () => {
    const several = error('', { code: 'ECONNREFUSED', errors: [error('first'), error('second')] })
    assert.match(postgres.explainPostgresError(several, 'address').message, /\(first\)/)
    assert.match(postgres.explainPostgresError(error('', { code: 'EHOSTDOWN' }), 'address').message, /\(EHOSTDOWN\)/)
    assert.match(postgres.explainPostgresError(error(''), 'address').message, /\(Error\)/)
  })
})

describe('a statement for PostgreSQL', () => {
  it('has numbered placeholders, and one call for each set of values', () => {
    const statement = {
      sql: 'SELECT ? + ?',
      runs: [
        [1, 2n],
        ['a', null],
      ],
      returns: 'rows',
    } as const
    assert.deepEqual(callsOf(statement), [
      { text: 'SELECT $1 + $2', values: [1, 2n] },
      { text: 'SELECT $1 + $2', values: ['a', null] },
    ])
  })

  it('names columns of given rows, and takes an array of the type of each', () => {
    const { givenValue, fromGiven, greatest, selectTexts } = postgresDialect
    const columns = [
      { name: 'id', type: 'text' },
      { name: 'at', type: 'integer' },
    ] as const
    const rows = 'FROM unnest(?::text[], ?::bigint[]) AS given (id, at)'
    assert.deepEqual(
      [givenValue('id'), fromGiven(columns), fromGiven(columns, '(SELECT 1)'), greatest('a', 'b'), selectTexts('?')],
      [
        'given.id',
        rows,
        `${rows} CROSS JOIN LATERAL (SELECT 1)`,
        'greatest(a, b)',
        'SELECT value FROM json_array_elements_text(?::json)',
      ],
    )
  })

  it('may need locks, which have the same numbers in every version', () => {
    const locks = ['migration', 'invoices', 'keys', 'prices', 'usage_sums', 'refusals'] as const
    assert.deepEqual(
      locks.map(lockCall),
      locks.map((_, number) => `SELECT pg_advisory_xact_lock(1464158546, ${number})`),
    )
  })

  it('has one call for given rows, with an array for each column', () => {
    const sql = 'INSERT INTO t SELECT * FROM unnest(?, ?)'
    const given = { sql, returns: 'nothing', isForGiven: true } as const
    const runs = [
      [1, 'a'],
      [null, 'say "x" \\ y'],
    ]
    assert.deepEqual(callsOf({ ...given, runs }), [
      { text: 'INSERT INTO t SELECT * FROM unnest($1, $2)', values: ['{1,NULL}', '{"a","say \\"x\\" \\\\ y"}'] },
    ])
    assert.deepEqual(callsOf({ ...given, runs: [] }), [])
  })

  it('refuses values that no table can hold', () => {
    for (const value of [undefined, true, {}, Symbol('x')]) {
      const runs = [[value as unknown as string]]
      assert.throws(() => callsOf({ sql: '?', runs, returns: 'rows' }), RefusedWrite)
    }
  })
})

describe('an error of SQLite', () => {
  it('is recognised by its primary code', () => {
    assert.equal(sqlite.sqliteCode({ errcode: 5 }), 5)
    assert.equal(sqlite.sqliteCode({ errcode: 2067 }), 19)
    for (const other of [undefined, {}, { errcode: '5' }]) assert.equal(sqlite.sqliteCode(other), undefined)
  })

  it('is explained with advice, and a code of its own', () => {
    const known: readonly (readonly [object, string, RegExp])[] = [
      [{ errcode: 5 }, 'ERR_DATA_DIR_LOCKED', /another program keeps \/data\/weir\.db locked \(x\)/],
      [{ errcode: 11 }, 'ERR_DATA_DIR_DAMAGED', /\/data is damaged \(x\) .* weir restore FILE --force/],
      [{ errcode: 26 }, 'ERR_DATA_DIR_DAMAGED', /is damaged/],
      [{ errcode: 8 }, 'ERR_DATA_DIR_DISK', /\/data cannot be written \(x\): make it writable/],
      [{ errcode: 14 }, 'ERR_DATA_DIR_DISK', /make it writable/],
      [{ errcode: 10 }, 'ERR_DATA_DIR_DISK', /check the disk and its free space/],
      [{ errcode: 13 }, 'ERR_DATA_DIR_DISK', /the disk is full/],
      [{ code: 'ENOSPC' }, 'ERR_DATA_DIR_DISK', /the disk is full, so \/data cannot/],
    ]
    for (const [properties, code, message] of known) {
      const it = sqlite.explainSqliteError(error('x', properties), '/data')
      assert.equal(codeOf(it), code)
      assert.match(it.message, message)
    }
    assert.match(
      sqlite.explainSqliteError(error('x', { code: 'ENOSPC' }), '/data', '/backup').message,
      /\/backup cannot/,
    )
    const other = error('x', { errcode: 1 })
    assert.equal(sqlite.explainSqliteError(other, '/data'), other)
    assert.equal(sqlite.explainSqliteError('text', '/data').message, 'text')
  })

  it('ends the attempts to replace the thread, unless it may be temporary: a full disk, a lock, or an unknown failure', () => {
    const codes = ['DAMAGED', 'NEWER', 'REPLACED', 'DISK', 'LOCKED'].map((it) => `ERR_DATA_DIR_${it}`)
    assert.deepEqual(
      [...codes, undefined].map((code) => sqlite.isFinal(error('x', { code }))),
      [true, true, true, false, false, false],
    )
  })

  it('is a permanent refusal if it is about values', () => {
    for (const properties of [
      { errcode: 18 },
      { errcode: 2067 },
      { errcode: 20 },
      { errcode: 25 },
      { code: 'ERR_INVALID_ARG_TYPE' },
    ])
      assert.ok(refusesValues(error('x', properties)), JSON.stringify(properties))
    assert.ok(refusesValues(error('integer overflow', { errcode: 1 })))
    for (const properties of [{}, { errcode: 1 }, { errcode: 5 }, { errcode: 13 }, { code: 'ENOSPC' }])
      assert.ok(!refusesValues(error('x', properties)), JSON.stringify(properties))
  })
})
