import assert from 'node:assert/strict'
import { existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { getPriority } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { stringify } from 'yaml'
import { backup } from '../../src/operate/backup/commands/backup.ts'
import { CommandFailed, Flags, UsageError, type Command } from '../../src/cli/command.ts'
import { journal } from '../../src/ledger/commands/journal.ts'
import { migrate } from '../../src/store/commands/migrate.ts'
import { recordedLoad, type Replay } from '../../src/queue/commands/recorded-load.ts'
import { restore } from '../../src/operate/backup/commands/restore.ts'
import { requireShared, workersOf } from '../../src/cli/serve/serve-workers.ts'
import { ConfigError } from '../../src/shared/checked-yaml.ts'
import { ApiError } from '../../src/shared/errors.ts'
import { MARCH, SLUG, stageWithRows } from '../support/books-stage.ts'
import { printed } from '../support/printed.ts'
import { scriptedService } from '../support/scripted-service.ts'
import { modelEntry } from '../support/weir.ts'

const POSTGRES = 'postgres://weir@127.0.0.1:9/weir'

async function failureOf(command: Command, ...args: readonly string[]): Promise<readonly unknown[]> {
  const { failure } = await printed(command, ...args)
  return [failure?.constructor, failure?.message]
}

/** A configuration with a database that no command may connect to. */
function postgresConfig(folder: string): string {
  const file = join(folder, 'postgres.yaml')
  writeFileSync(file, stringify({ database: POSTGRES, data_dir: 'pg', models: [] }))
  return file
}

describe('weir backup and weir restore', () => {
  it('write the ledger to a file, and restore it', async (t) => {
    const { dataDir } = await stageWithRows(t)
    const file = join(dataDir, 'backup')
    const first = await printed(backup, file, '--data', dataDir)
    assert.equal(first.failure, undefined)
    assert.match(
      first.stdout,
      new RegExp(`^${file}: \\d+ KB, 3 ledger rows, checked\\.\nRestore it with: weir restore ${file}\n$`),
    )
    const again = await printed(backup, file, '--data', dataDir)
    assert.match(String(again.failure?.message), /exists: choose another name, or replace it with --force$/)
    const forced = await printed(backup, file, '--force', '--json', '--data', dataDir)
    const made = JSON.parse(forced.stdout) as Readonly<Record<string, unknown>>
    assert.deepEqual(Object.keys(made), [
      'file',
      'bytes',
      'created',
      'schema',
      'sha256',
      'ledger_rows',
      'journal_bytes',
      'batch_file_bytes',
      'batch_files_elsewhere',
    ])
    assert.partialDeepStrictEqual(made, { file, ledger_rows: 3, journal_bytes: 0, bytes: statSync(file).size })
    const target = join(dataDir, 'restored')
    const restored = await printed(restore, file, '--data', target)
    assert.match(
      restored.stdout,
      new RegExp(
        `^${target} is as it was on \\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d \\(Sydney\\): 3 ledger rows\\.\nCheck the ledger with weir reconcile, then start the service\\.\n$`,
      ),
    )
    assert.ok(existsSync(join(target, 'weir.db')))
    assert.ok((await printed(restore, file, '--data', target)).failure)
    const over = await printed(restore, file, '--force', '--data', target)
    assert.match(over.stdout, new RegExp(`\nWhat was there before is in ${target}/before-restore-.*\\.\nCheck `))
    const last = JSON.parse((await printed(restore, file, '--force', '--json', '--data', target)).stdout) as Readonly<
      Record<string, unknown>
    >
    assert.partialDeepStrictEqual(last, {
      file,
      data_dir: target,
      created: made['created'],
      schema: made['schema'],
      ledger_rows: 3,
    })
    assert.match(String(last['replaced']), /before-restore-/)
    const fresh = await printed(restore, file, '--json', '--data', `${target}-2`)
    assert.equal((JSON.parse(fresh.stdout) as { replaced: null }).replaced, null)
  })

  it('wait for the service, which first brings its rows into the database', async (t) => {
    const { dataDir } = await stageWithRows(t)
    let settled = 0
    await scriptedService(t, dataDir, {
      async settled() {
        settled += 1
        throw new Error('the database is away')
      },
    })
    const { failure } = await printed(backup, join(dataDir, 'backup'), '--data', dataDir)
    assert.equal(failure, undefined)
    assert.equal(settled, 1)
    assert.ok(getPriority() >= 10)
  })

  it('need a file, and a ledger in SQLite', async (t) => {
    const { dataDir } = await stageWithRows(t)
    const config = postgresConfig(dataDir)
    const away = 'the ledger is in PostgreSQL, not in the data directory:'
    assert.deepEqual(await failureOf(backup, 'x', '--config', config), [
      CommandFailed,
      `${away} back it up with pg_dump`,
    ])
    assert.deepEqual(await failureOf(restore, 'x', '--config', config), [
      CommandFailed,
      `${away} restore it with pg_restore`,
    ])
    for (const [command, words] of [
      [backup, 'write: weir backup FILE'],
      [restore, 'restore: weir restore FILE'],
    ] as const) {
      const what = command === backup ? 'the file to' : 'the backup to'
      assert.deepEqual(await failureOf(command), [UsageError, `give ${what} ${words}`])
      assert.deepEqual(await failureOf(command, ''), [UsageError, `give ${what} ${words}`])
      const more = 'unexpected argument "b"; put names with spaces in quotes'
      assert.deepEqual(await failureOf(command, 'a', 'b'), [UsageError, more])
    }
  })
})

describe('weir migrate and weir journal', () => {
  it('need a database to bring the rows to', async (t) => {
    const { dataDir } = await stageWithRows(t)
    const file = join(dataDir, 'weir.yaml')
    assert.deepEqual(await failureOf(migrate, '--config', file), [
      UsageError,
      'give the database to move to: weir migrate --to postgres://…',
    ])
    const [wrong, message] = await failureOf(migrate, '--to', 'mysql://x', '--config', file)
    assert.equal(wrong, ConfigError)
    assert.match(String(message), /^--to: must be sqlite, or the address/)
    const directory = 'give the data directory of the service: weir journal ship DIR'
    for (const args of [[], ['ship'], ['ship', ''], ['send', dataDir]]) {
      assert.deepEqual(await failureOf(journal, ...args, '--config', file), [UsageError, directory])
    }
    assert.deepEqual(await failureOf(journal, 'ship', dataDir, '--config', file), [
      CommandFailed,
      'the configuration has no PostgreSQL; with SQLite, the next start or command on the directory brings the rows there',
    ])
    const config = postgresConfig(dataDir)
    const empty = join(dataDir, 'empty')
    mkdirSync(empty)
    assert.deepEqual(await failureOf(journal, 'ship', empty, '--config', config), [
      CommandFailed,
      `${empty} has no journal`,
    ])
  })
})

describe('workers', () => {
  it('are counted from 1 to 256', () => {
    assert.equal(workersOf(undefined), undefined)
    assert.deepEqual(['1', '256'].map(workersOf), [1, 256])
    for (const text of ['0', '257', '-1', '1.5', 'x', '', '0256']) {
      assert.throws(() => workersOf(text), new UsageError('--workers must be a number from 1 to 256'))
    }
  })

  it('need a Redis and a PostgreSQL, and report which of them is missing', () => {
    const [redisUrl, databaseUrl, dataDir] = ['redis://h', POSTGRES, '/srv']
    assert.deepEqual(requireShared({ redisUrl, databaseUrl, dataDir }), { databaseUrl, dataDir })
    const missing = (parts: { redisUrl?: string; databaseUrl?: string }): string => {
      try {
        requireShared({ redisUrl: undefined, databaseUrl: undefined, ...parts, dataDir })
      } catch (error) {
        assert.ok(error instanceof ConfigError)
        return /needs (.*), which all workers share/.exec(error.message)?.[1] ?? ''
      }
      return assert.fail()
    }
    const [redis, database] = ['Redis (coordination, or WEIR_REDIS_URL)', 'PostgreSQL (database, or WEIR_DATABASE_URL)']
    assert.equal(missing({}), `${redis} and ${database}`)
    assert.equal(missing({ redisUrl }), database)
    assert.equal(missing({ databaseUrl }), redis)
  })
})

describe('a load that is replayed from the ledger', () => {
  async function stage(t: TestContext) {
    const { dataDir, books } = await stageWithRows(t)
    const file = join(dataDir, 'replay.yaml')
    const engine = { kind: 'openai', urls: ['http://127.0.0.1:9/v1'], model: 'm' }
    const reserved = {
      ...modelEntry([], { id: 'for/one', aliases: [] }),
      serverless: undefined,
      dedicated: [
        { workspace: 'other', engine },
        { workspace: 'acme', engine },
      ],
    }
    writeFileSync(file, stringify({ models: [modelEntry(['http://127.0.0.1:9/v1']), reserved] }))
    const flags = new Flags({ values: { config: file, data: dataDir }, positionals: [] })
    const day: Replay = { model: 'test-8b', workspace: undefined, from: '2025-03-15', to: '2025-03-15' }
    return { books, read: (replay: Partial<Replay> = {}) => recordedLoad(flags, { ...day, ...replay }) }
  }
  const DAY_MS = 86_400_000
  /** 12:30, when the first row of the day arrived. */
  const HALF_PAST_12_MS = 12.5 * 3_600_000

  it('has the requests of its lane and period, with times from the start of it', async (t) => {
    const { read, books } = await stage(t)
    const sizes = { inputTokens: 1_000_000, maxTokens: 100, outputTokens: 500_000 }
    assert.deepEqual(await read(), {
      arrivals: [
        { atMs: HALF_PAST_12_MS, ...sizes },
        { atMs: HALF_PAST_12_MS + 1000, ...sizes, inputTokens: 70_000, outputTokens: 0 },
      ],
      durationMs: DAY_MS,
    })
    const [acme] = await books.store.workspaces()
    const own = await books.row(acme!, 'for/one', 1, MARCH, { inputTokens: 5 })
    await books.settle([
      { ...own, requestId: 'own', lane: 'for/one@acme' },
      { ...own, requestId: 'other', lane: 'for/one@other', inputTokens: 6 },
    ])
    const dedicated = await read({ model: 'for/one', workspace: 'acme' })
    assert.deepEqual(
      dedicated.arrivals.map(({ inputTokens }) => inputTokens),
      [5],
    )
    // Up to now, though the period goes on.
    t.mock.timers.enable({ apis: ['Date'], now: MARCH + 500 })
    const cut = await read()
    t.mock.timers.reset()
    assert.deepEqual([cut.durationMs, cut.arrivals.length], [HALF_PAST_12_MS + 500, 1])
  })

  it('refuses a model, a lane or a period without requests', async (t) => {
    const { read } = await stage(t)
    await assert.rejects(
      read({ model: 'none' }),
      new ApiError('model_not_found', "The model 'none' is not in the catalog."),
    )
    await assert.rejects(
      read({ model: 'for/one' }),
      new UsageError('for/one has only reserved capacity; choose whose with --workspace'),
    )
    await assert.rejects(read({ workspace: 'acme' }), new UsageError(`${SLUG} has no capacity reserved for acme`))
    const order = new UsageError('--from must be before --to, and in the past')
    await assert.rejects(read({ from: '2099-01-01', to: '2099-01-02' }), order)
    await assert.rejects(
      read({ from: '2025-02-01', to: '2025-02-02' }),
      new UsageError(`the ledger has no requests to ${SLUG} in this period`),
    )
  })
})
