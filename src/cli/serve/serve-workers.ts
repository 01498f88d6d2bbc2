import { ConfigError } from '../../shared/checked-yaml.ts'
import type { Config } from '../../config.ts'
import { startWorkers } from '../../cluster/workers/supervise.ts'
import { CommandFailed, UsageError } from '../command.ts'
import { deliverOrphanedJournals } from '../../ledger/commands/orphaned-journals.ts'
import { stopSignal } from './stop-signal.ts'

const WORKERS_MAX = 256

/** The number after --workers; undefined without it. */
export function workersOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const count = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (count < 1 || count > WORKERS_MAX) throw new UsageError(`--workers must be a number from 1 to ${WORKERS_MAX}`)
  return count
}

/** What workers share. */
export interface SharedStorage {
  readonly dataDir: string
  readonly databaseUrl: string
}

/** Workers are replicas, so they need what replicas share. */
export function requireShared({
  redisUrl,
  databaseUrl,
  dataDir,
}: Pick<Config, 'redisUrl' | 'databaseUrl' | 'dataDir'>): SharedStorage {
  if (redisUrl !== undefined && databaseUrl !== undefined) return { dataDir, databaseUrl }
  const missing = [
    ...(redisUrl === undefined ? ['Redis (coordination, or WEIR_REDIS_URL)'] : []),
    ...(databaseUrl === undefined ? ['PostgreSQL (database, or WEIR_DATABASE_URL)'] : []),
  ]
  throw new ConfigError(
    `--workers needs ${missing.join(' and ')}, which all workers share. To start both: ` +
      'docker run -d -p 6379:6379 redis:7; docker run -d -p 5432:5432 -e POSTGRES_PASSWORD=weir postgres:17; then set ' +
      'WEIR_REDIS_URL=redis://127.0.0.1:6379 and WEIR_DATABASE_URL=postgres://postgres:weir@127.0.0.1:5432/postgres',
  )
}

/** Runs the workers until a signal arrives. They write to the same output. */
export async function runWorkers(count: number, shared: SharedStorage, args: readonly string[]): Promise<void> {
  const workers = startWorkers({
    count,
    // This program itself.
    program: process.argv[1] ?? '',
    args: ['serve', ...args],
    events: {
      ended(worker, how, againInMs) {
        log(40, { worker, how, again_in_ms: againInMs }, 'a worker has ended; another takes its place')
      },
    },
  })
  const signalled = stopSignal(
    () => workers.reload(),
    () => workers.signal('SIGKILL'),
  )
  const started = workers.started.catch(({ message }: Error) => {
    throw new CommandFailed(message)
  })
  await Promise.race([started, signalled])
  const delivered = deliver(shared, count)
  await workers.stop((await signalled).name)
  await delivered
}

/** The workers serve in the meantime. */
async function deliver({ dataDir, databaseUrl }: SharedStorage, count: number): Promise<void> {
  for (const { directory, ...left } of await deliverOrphanedJournals(dataDir, databaseUrl, count)) {
    if ('failure' in left) {
      log(40, { directory, reason: left.failure }, `its journal is not delivered: run weir journal ship ${directory}`)
    } else log(30, { directory, ...left }, 'delivered the journal of a directory that no worker uses any more')
  }
}

function log(level: 30 | 40, details: object, msg: string): void {
  process.stderr.write(`${JSON.stringify({ level, time: new Date().toISOString(), ...details, msg })}\n`)
}
