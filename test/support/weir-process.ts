import type { ChildProcess } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import type { LedgerRow } from '../../src/ledger/rows.ts'
import { collect, startCli, startNote } from './cli.ts'
import { eventually } from './waiting.ts'
import { ledgerOf } from './weir.ts'

/** A start or an end that takes a second takes a minute and more beside busy programs. Only what hangs takes longer than this. */
export const BUSY_MACHINE_MS = 240_000

/** `weir serve` in a process of its own, on a data directory that outlives it: to be stopped, killed and started again. */
export interface WeirProcess {
  /** Of the process that runs now. */
  readonly base: string
  readonly adminUrl: string
  readonly key: string
  readonly dataDir: string
  readonly pid: number
  /** Starts the next process on the same data. */
  start(): Promise<void>
  signal(name: NodeJS.Signals): void
  /** What the process ended with: its code, or the signal that killed it. */
  ended(): Promise<number | NodeJS.Signals>
  /** What it has logged so far. */
  log(): string
  chat(body: object): Promise<Response>
  /** Every row, while it runs or after. */
  ledger(): Promise<readonly LedgerRow[]>
  /** Kills what still runs, and removes the data. */
  remove(): Promise<void>
}

export function weirProcess(config: object, environment: NodeJS.ProcessEnv = {}): Promise<WeirProcess> {
  return processIn(temporaryFolder(), config, environment)
}

/** Without a configuration, as `npm start` runs on a fresh machine; the weights are those of `modelsDirectory`. */
export function unconfiguredWeirProcess(modelsDirectory: string): Promise<WeirProcess> {
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'data'))
  symlinkSync(modelsDirectory, join(folder, 'data', 'models'))
  return processIn(folder, undefined, { WEIR_PORT: '0', WEIR_ADMIN_PORT: '0' })
}

function temporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), 'weir-process-'))
}

async function processIn(
  folder: string,
  config: object | undefined,
  environment: NodeJS.ProcessEnv,
): Promise<WeirProcess> {
  const configFile = join(folder, 'weir.yaml')
  const dataDir = join(folder, 'data')
  if (config) writeFileSync(configFile, stringify({ log: { level: 'silent' }, ...config }))
  const chosen = config ? ['--config', configFile] : []
  let child: ChildProcess | undefined
  let over: Promise<number | NodeJS.Signals> = Promise.resolve(0)
  let base = ''
  let adminUrl = ''
  let key = ''
  let log = (): string => ''

  async function start(): Promise<void> {
    const started = startCli(['serve', ...chosen, '--data', dataDir], { environment })
    const stdout = collect(started.stdout)
    const stderr = collect(started.stderr)
    let hasEnded = false
    over = new Promise((resolve) => {
      started.once('exit', (code, signal) => {
        hasEnded = true
        resolve(code ?? signal ?? 0)
      })
    })
    child = started
    log = stderr
    await eventually('the service runs', () => hasEnded || stdout().endsWith('\n'), BUSY_MACHINE_MS)
    if (hasEnded) throw new Error(`weir serve ended at once: ${stderr()}`)
    const note = startNote(stdout())
    base = note.api
    adminUrl = note.operator
    key = note.firstKey ?? key
  }

  async function remove(): Promise<void> {
    child?.kill('SIGKILL')
    await over
    rmSync(folder, { recursive: true, force: true })
  }

  try {
    await start()
  } catch (error) {
    // A process that is left running keeps its test from ending.
    await remove()
    throw error
  }
  return {
    get base() {
      return base
    },
    get adminUrl() {
      return adminUrl
    },
    get key() {
      return key
    },
    get pid() {
      return child?.pid ?? 0
    },
    dataDir,
    start,
    signal: (name) => void child?.kill(name),
    ended: () => over,
    log: () => log(),
    chat: (body) =>
      fetch(`${base}/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
        body: JSON.stringify({ model: 'meta/test-8b', messages: [{ role: 'user', content: 'Hi' }], ...body }),
      }),
    ledger: () => ledgerOf({ dataDir, databaseUrl: environment['WEIR_DATABASE_URL'] }),
    remove,
  }
}

/** Memory that the process has in use, in bytes. */
export function residentBytes(pid: number): number {
  const kilobytes = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return Number(kilobytes) * 1024
}
