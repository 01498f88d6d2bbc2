import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { timeLimitNames, timeLimits } from '../../src/store/postgres/time-limits.ts'
import { freePort } from './free-port.ts'
import { unprivilegedAccount } from './postgres-server.ts'
import { eventually } from './waiting.ts'

/** A real PgBouncer on loopback, in front of one PostgreSQL. */
export interface PgBouncer {
  /** The address of the same database, behind it. */
  behind(databaseUrl: string): string
  remove(): Promise<void>
}

export interface PgBouncerOptions {
  readonly mode: 'session' | 'transaction' | 'statement'
  /** Startup parameters that it takes and throws away; others it refuses. */
  readonly ignored?: readonly string[]
  /** How many connections to PostgreSQL its clients share. */
  readonly connections?: number
}

/** Why tests with PgBouncer are left out; false where it is installed. */
export const withoutPgBouncer: false | string =
  spawnSync('pgbouncer', ['--version']).error === undefined ? false : 'install the package pgbouncer'

/** Gives the limits of time that PgBouncer does not hand on to every connection of Weir's user. */
export async function limitWaits(databaseUrl: string): Promise<string> {
  const client = new Client(databaseUrl)
  await client.connect()
  for (const [name, ms] of Object.entries(timeLimits)) await client.query(`ALTER ROLE weir SET ${name} = ${ms}`)
  await client.end()
  return databaseUrl
}

export async function startPgBouncer(server: { readonly port: number }, options: PgBouncerOptions): Promise<PgBouncer> {
  const { mode, ignored = timeLimitNames, connections = 20 } = options
  const account = unprivilegedAccount()
  const folder = mkdtempSync(join(account ? '/tmp' : tmpdir(), 'weir-pgbouncer-'))
  const settings = join(folder, 'pgbouncer.ini')
  const port = await freePort()
  writeFileSync(join(folder, 'users'), '"weir" ""\n')
  writeFileSync(
    settings,
    `[databases]
* = host=127.0.0.1 port=${server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${join(folder, 'users')}
pool_mode = ${mode}
default_pool_size = ${connections}
ignore_startup_parameters = ${ignored.join(', ')}
server_login_retry = 0.2
`,
  )
  if (account) for (const file of [folder, settings]) chownSync(file, account.uid, account.gid)
  const child = spawn('pgbouncer', ['--quiet', settings], { stdio: 'ignore', cwd: folder, ...account })
  const ended = once(child, 'exit')
  await eventually('PgBouncer answers', async () => {
    if (child.exitCode !== null) throw new Error(`pgbouncer ended with ${child.exitCode}`)
    const client = new Client({ host: '127.0.0.1', port, user: 'weir', database: 'postgres' })
    client.on('error', () => {})
    return client.connect().then(
      () => client.end().then(() => true),
      () => false,
    )
  })
  return {
    behind(databaseUrl) {
      const url = new URL(databaseUrl)
      url.port = `${port}`
      return url.href
    },
    async remove() {
      child.kill('SIGTERM')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
