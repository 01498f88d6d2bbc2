import { spawn, type ChildProcess } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** How a run of the command line ended, and what it wrote. */
export interface CliResult {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
  /** The one JSON object on stdout, taken to be what the test expects. */
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters
  json<Shape = Record<string, unknown>>(): Shape
}

const BIN = fileURLToPath(new URL('../../bin/weir.mjs', import.meta.url))
const folder = join(tmpdir(), 'weir-cli')

export interface CliOptions {
  readonly cwd?: string
  readonly environment?: NodeJS.ProcessEnv
  /** `pipe`: the test writes to it. Otherwise it is empty. */
  readonly input?: 'pipe'
}

/** Nothing of the tester's own settings reaches a command, and no weir.yaml that happens to be in the tester's folder. */
export function surroundings({ cwd = folder, environment }: Omit<CliOptions, 'input'>): {
  cwd: string
  env: NodeJS.ProcessEnv
} {
  mkdirSync(folder, { recursive: true })
  return {
    cwd,
    env: {
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      // Starting a process costs half as much with it.
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? join(folder, 'compiled'),
      ...environment,
    },
  }
}

export function startCli(args: readonly string[], { input, ...options }: CliOptions = {}): ChildProcess {
  return spawn(process.execPath, [BIN, ...args], {
    ...surroundings(options),
    stdio: [input ?? 'ignore', 'pipe', 'pipe'],
  })
}

/** The command line as a user runs it: bin/weir.mjs in a process of its own. */
export async function cli(args: readonly string[], options?: CliOptions): Promise<CliResult> {
  const child = startCli(args, options)
  const stdout = collect(child.stdout)
  const stderr = collect(child.stderr)
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  return cliResult(args, code, stdout(), stderr())
}

export function cliResult(args: readonly string[], code: number | null, stdout: string, stderr: string): CliResult {
  return {
    code,
    stdout,
    stderr,
    // oxlint-disable-next-line typescript/no-unnecessary-type-parameters
    json<Shape>() {
      if (code !== 0) throw new Error(`weir ${args.join(' ')} ended with ${code}: ${stderr}`)
      return JSON.parse(stdout) as Shape
    },
  }
}

/** The line that `weir serve` writes to stdout once it runs, and the first key if this was the first start. */
export function startNote(stdout: string): {
  readonly api: string
  readonly operator: string
  readonly firstKey?: string
} {
  const note = JSON.parse(stdout) as { api: string; operator: string; first_api_key_file?: string }
  const file = note.first_api_key_file
  return { ...note, ...(file === undefined ? {} : { firstKey: readFileSync(file, 'utf8').trim() }) }
}

/** What a stream has said so far. */
export function collect(stream: NodeJS.ReadableStream | null): () => string {
  const chunks: Buffer[] = []
  stream?.on('data', (chunk: Buffer) => chunks.push(chunk))
  return () => Buffer.concat(chunks).toString('utf8')
}
