import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Client } from 'pg'
import { freePort } from './free-port.ts'
import { eventually } from './waiting.ts'

/** A real PostgreSQL on loopback, with a cluster of its own and settings that make it fast rather than durable. */
export interface PostgresServer {
  readonly port: number
  /** Of its first process, the parent of the others. */
  readonly pid: number
  /** The file of its certificate, which it has signed itself. */
  readonly certificate: string
  /** The address of a new, empty database. */
  createDatabase(): Promise<string>
  /** Ends it at once, as a crash would. Everything that was committed is there after the next start. */
  kill(): Promise<void>
  start(): Promise<void>
  signal(name: NodeJS.Signals): void
  /** Ends it and removes its folder. */
  remove(): Promise<void>
}

interface Account {
  readonly uid: number
  readonly gid: number
}

const FAST = ['fsync=off', 'full_page_writes=off', 'shared_buffers=32MB', 'jit=off', 'max_connections=100']

/** With `tls`, it has a certificate for this host name or address. `settings` are added to those that make it fast. */
export async function startPostgres({
  tls,
  settings: added = [],
}: { readonly tls?: string; readonly settings?: readonly string[] } = {}): Promise<PostgresServer> {
  const programs = programsFolder()
  const account = unprivilegedAccount()
  // The folder for temporary files may be one that only root can enter.
  const folder = mkdtempSync(join(account ? '/tmp' : tmpdir(), 'weir-postgres-'))
  if (account) chownSync(folder, account.uid, account.gid)
  const data = join(folder, 'data')
  const certificate = join(folder, 'server.crt')
  const key = join(folder, 'server.key')
  const port = await freePort()
  let child: ChildProcess | undefined
  let databases = 0

  async function start(): Promise<void> {
    const encryption = tls === undefined ? [] : ['ssl=on', `ssl_cert_file=${certificate}`, `ssl_key_file=${key}`]
    const place = ['unix_socket_directories=', 'listen_addresses=127.0.0.1', `port=${port}`]
    const settings = [...FAST, ...encryption, ...place, ...added]
    const options = ['-D', data, ...settings.flatMap((it) => ['-c', it])]
    const started = spawn(join(programs, 'postgres'), options, { stdio: 'ignore', cwd: folder, ...account })
    child = started
    await eventually('PostgreSQL answers', async () => {
      if (started.exitCode !== null) throw new Error(`postgres ended with ${started.exitCode}`)
      return ask('SELECT 1').then(
        () => true,
        () => false,
      )
    })
  }

  async function ask(sql: string): Promise<void> {
    const client = new Client({ host: '127.0.0.1', port, user: 'weir', database: 'postgres' })
    client.on('error', () => {})
    try {
      await client.connect()
      await client.query(sql)
    } finally {
      await client.end().catch(() => {})
    }
  }

  async function kill(): Promise<void> {
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const over = once(child, 'exit')
    // Immediate shutdown: all its processes end at once, and the next start recovers as after a crash.
    child.kill('SIGQUIT')
    await over
  }

  execFileSync('cp', ['-r', newCluster(programs, folder, account), data], { cwd: folder, ...account })
  if (tls !== undefined) {
    const name = tls.includes('.') ? `IP:${tls}` : `DNS:${tls}`
    const options = ['-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', `/CN=${tls}`]
    execFileSync(
      'openssl',
      ['req', '-x509', ...options, '-addext', `subjectAltName=${name}`, '-keyout', key, '-out', certificate],
      { stdio: 'ignore', cwd: folder, ...account },
    )
  }
  await start()
  return {
    port,
    certificate,
    get pid() {
      return child?.pid ?? 0
    },
    start,
    kill,
    async createDatabase() {
      const name = `weir_${++databases}`
      await ask(`CREATE DATABASE ${name}`)
      return `postgres://weir:never-shown@127.0.0.1:${port}/${name}`
    },
    signal: (name) => void child?.kill(name),
    async remove() {
      await kill()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/**
 * A cluster that was never started, to be copied: making one takes a second of processor time. It stays in the folder for
 * temporary files, for the next server and the next run.
 */
function newCluster(programs: string, folder: string, account: Account | undefined): string {
  const user = account?.uid ?? process.getuid?.()
  const cluster = join(dirname(folder), `weir-new-cluster-${user}${programs.replaceAll('/', '-')}`)
  if (existsSync(cluster)) return cluster
  const made = join(folder, 'made')
  const options = ['-U', 'weir', '-A', 'trust', '-E', 'UTF8', '--wal-segsize=1', '--no-sync']
  execFileSync(join(programs, 'initdb'), ['-D', made, ...options], {
    stdio: ['ignore', 'ignore', 'pipe'],
    cwd: folder,
    ...account,
  })
  try {
    renameSync(made, cluster)
  } catch (error) {
    // Another process has made it in the meantime.
    if (!existsSync(cluster)) throw error
  }
  return cluster
}

/** Debian keeps the programs of each version in a folder of their own, outside the path. */
function programsFolder(): string {
  const versions = '/usr/lib/postgresql'
  const found = existsSync(versions) ? readdirSync(versions).map((version) => join(versions, version, 'bin')) : []
  const inPath = (process.env['PATH'] ?? '').split(':')
  const folder = [...found.toSorted().toReversed(), ...inPath].find((it) => existsSync(join(it, 'initdb')))
  if (folder === undefined) throw new Error('these tests need PostgreSQL 15 or later: install the package postgresql')
  return folder
}

/** PostgreSQL refuses to run as root, so root runs it as the account that its package makes. */
export function unprivilegedAccount(): Account | undefined {
  if (process.getuid?.() !== 0) return undefined
  const idOf = (flag: string): number => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))
  return { uid: idOf('-u'), gid: idOf('-g') }
}
