import { spawn, type ChildProcess } from 'node:child_process'
import { mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

/** `weir serve` in its own process, on loopback, with an empty data directory. */
export interface WeirProcess {
  readonly origin: string
  /** The operator's listener. */
  readonly operator: string
  readonly key: string
  readonly pid: number
  readonly dataDir: string
  /** How long it took from the start of the process until it served. */
  readonly readyMs: number
  /** Stops it, does something to its data, and starts it again. */
  restarted(whileStopped: () => void): Promise<WeirProcess>
  stop(): Promise<void>
}

/** What another run left in a folder is served as it is. */
export interface BenchOptions {
  readonly modelsDirectory?: string | undefined
  /** A folder that is kept when the service has stopped. */
  readonly kept?: string | undefined
  /** How many processes serve. Then `pid` is of the one that starts them. */
  readonly workers?: number
}

/**
 * `config` is merged into weir.yaml. Weir listens on free ports, runs with the Node options of the bench, and uses the
 * embedded models in `modelsDirectory`.
 */
export async function startWeir(
  config: object,
  { modelsDirectory, kept, workers }: BenchOptions = {},
): Promise<WeirProcess> {
  const folder = kept ?? mkdtempSync(join(tmpdir(), 'weir-bench-'))
  const file = join(folder, 'weir.yaml')
  const dataDir = join(folder, 'data')
  if (modelsDirectory !== undefined) {
    mkdirSync(dataDir)
    symlinkSync(resolve(modelsDirectory), join(dataDir, 'models'))
  }
  const server = { port: 0, admin_port: 0, drain_ms: 0 }
  const rateLimit = { requests_per_minute: 100_000_000 }
  writeFileSync(file, JSON.stringify({ server, data_dir: dataDir, rate_limit: rateLimit, ...config }))
  return startIn(folder, dataDir, { isKept: kept !== undefined, workers })
}

interface Start {
  readonly isKept: boolean
  readonly workers: number | undefined
}

async function startIn(folder: string, dataDir: string, start: Start): Promise<WeirProcess> {
  const main = new URL('../src/main.ts', import.meta.url).pathname
  const log = join(folder, 'weir.log')
  const stdio = ['ignore', 'pipe', openSync(log, 'w')] as const
  const workers = start.workers === undefined ? [] : ['--workers', String(start.workers)]
  const args = [...process.execArgv, main, 'serve', '--config', join(folder, 'weir.yaml'), ...workers]
  const startedAt = performance.now()
  const child = spawn(process.execPath, args, { stdio: [...stdio] })
  // A failed bench must not leave a service running.
  const kill = (): void => void child.kill()
  process.once('exit', kill)
  child.once('exit', () => process.off('exit', kill))
  const { url: origin, operator } = await greeting(child, log)
  const key = readFileSync(join(dataDir, 'first-api-key'), 'utf8').trim()
  const readyMs = performance.now() - startedAt
  async function ended(): Promise<void> {
    const over = new Promise((resolve) => child.once('exit', resolve))
    child.kill()
    await over
  }
  return {
    origin,
    operator,
    key,
    pid: child.pid ?? 0,
    dataDir,
    readyMs,
    async restarted(whileStopped) {
      await ended()
      whileStopped()
      return startIn(folder, dataDir, start)
    },
    async stop() {
      await ended()
      if (!start.isKept) rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Reads the addresses from the line that a start writes. */
async function greeting(child: ChildProcess, logFile: string): Promise<{ url: string; operator: string }> {
  let text = ''
  for await (const chunk of child.stdout ?? []) {
    text += String(chunk)
    if (text.endsWith('\n')) return JSON.parse(text) as { url: string; operator: string }
  }
  throw new Error(`Weir did not start:\n${readFileSync(logFile, 'utf8')}`)
}

export function residentBytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024
}

/** A chat model for weir.yaml. */
export function benchModel(engineUrl: string, limits: object, id = 'bench/model'): object {
  return {
    id,
    categories: ['llm'],
    context_length: 131_072,
    pricing: { input_per_million: '0.20', output_per_million: '0.60' },
    serverless: { engine: { kind: 'openai', urls: [engineUrl], model: 'engine-name' }, limits },
  }
}
