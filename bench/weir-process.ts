import { spawn, type ChildProcess } from 'node:child_process'
import { mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

/** `weir serve` in its own process, on loopback, with an empty data directory. */
export interface WeirProcess {
  readonly origin: string
  readonly key: string
  readonly pid: number
  readonly dataDir: string
  stop(): Promise<void>
}

/**
 * `config` is merged into weir.yaml. Weir listens on free ports, runs with the Node options of the bench, and uses the
 * embedded models in `modelsDirectory`.
 */
export async function startWeir(config: object, modelsDirectory?: string): Promise<WeirProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-bench-'))
  const file = join(folder, 'weir.yaml')
  const dataDir = join(folder, 'data')
  if (modelsDirectory !== undefined) {
    mkdirSync(dataDir)
    symlinkSync(resolve(modelsDirectory), join(dataDir, 'models'))
  }
  const server = { port: 0, admin_port: 0, drain_ms: 0 }
  const rateLimit = { requests_per_minute: 100_000_000 }
  writeFileSync(file, JSON.stringify({ server, data_dir: dataDir, rate_limit: rateLimit, ...config }))
  const main = new URL('../src/main.ts', import.meta.url).pathname
  const log = join(folder, 'weir.log')
  const stdio = ['ignore', 'pipe', openSync(log, 'w')] as const
  const args = [...process.execArgv, main, 'serve', '--config', file]
  const child = spawn(process.execPath, args, { stdio: [...stdio] })
  // A failed bench must not leave a service running.
  process.once('exit', () => child.kill())
  return {
    ...(await greeting(child, log)),
    pid: child.pid ?? 0,
    dataDir,
    async stop() {
      const ended = new Promise((over) => child.once('exit', over))
      child.kill()
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Reads the base address and the first key from the line that the first start writes. */
async function greeting(child: ChildProcess, logFile: string): Promise<{ origin: string; key: string }> {
  let text = ''
  for await (const chunk of child.stdout ?? []) {
    text += String(chunk)
    if (!text.endsWith('\n')) continue
    const { url: origin, first_api_key_file: file } = JSON.parse(text) as { url: string; first_api_key_file: string }
    return { origin, key: readFileSync(file, 'utf8').trim() }
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
