import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, request as forward, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { homedir, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { TestContext } from 'node:test'
import { chatStage, type ChatStage, type StageOptions } from '../support/chat-stage.ts'

/** Where `npm run install:agents` installs the agents. */
const directory =
  process.env['WEIR_AGENTS_DIR'] ?? join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'weir', 'agents')

/** The programs themselves, from the packages for this platform: their launchers need scripts that are not run. */
const programs = {
  codex: join('.bin', 'codex'),
  claude: join('@anthropic-ai', `claude-code-linux-${process.arch}`, 'claude'),
  opencode: join(process.arch === 'x64' ? 'opencode-linux-x64-baseline' : 'opencode-linux-arm64', 'bin', 'opencode'),
}

export type AgentName = keyof typeof programs

function agentProgram(name: AgentName): string {
  return join(directory, 'node_modules', programs[name])
}

/** The packages that say which version it is. */
const packages = { codex: '@openai/codex', claude: '@anthropic-ai/claude-code', opencode: 'opencode-ai' }

export function installedVersion(name: AgentName): string {
  const manifest = readFileSync(join(directory, 'node_modules', packages[name], 'package.json'), 'utf8')
  return (JSON.parse(manifest) as { version: string }).version
}

/** For a suite's `skip`: false when the agent is here, otherwise the reason. */
export function missing(name: AgentName): string | false {
  return !existsSync(agentProgram(name)) && `${name} not found in ${directory}; npm run install:agents installs it`
}

/** A model as one would set it up for a coding agent. */
export function agentStage(t: TestContext, script: StageOptions['script'] & {}, model: object): Promise<ChatStage> {
  return chatStage(t, {
    script,
    limits: { token_budget: 10_000_000 },
    model: {
      context_length: 200_000,
      max_completion_tokens: 64_000,
      default_max_tokens: 32_000,
      supported_parameters: ['tools', 'tool_choice', 'parallel_tool_calls', 'reasoning_effort', 'temperature', 'top_p'],
      ...model,
    },
  })
}

/** A home and a folder to work in, of their own. They are removed after the test. */
export interface AgentHome {
  readonly home: string
  readonly work: string
  write(file: string, text: string): void
}

export function agentHome(t: TestContext): AgentHome {
  const folder = mkdtempSync(join(tmpdir(), 'weir-agent-'))
  t.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 }))
  const home = join(folder, 'home')
  const work = join(folder, 'work')
  mkdirSync(home)
  mkdirSync(work)
  return {
    home,
    work,
    write(file, text) {
      const place = join(folder, file)
      mkdirSync(dirname(place), { recursive: true })
      writeFileSync(place, text)
    },
  }
}

export interface RunningAgent {
  /** Everything it printed so far. */
  output(): string
  /** Its exit code; null after a signal. */
  readonly over: Promise<number | null>
  /** What a person does with Ctrl+C. */
  interrupt(): void
}

const LONGEST_RUN_MS = 180_000

/** Starts an agent with an empty environment, except for what is given. */
export function startAgent(
  t: TestContext,
  name: AgentName,
  args: readonly string[],
  { home, work }: AgentHome,
  variables: Readonly<Record<string, string>>,
): RunningAgent {
  const child = spawn(agentProgram(name), args, {
    cwd: work,
    env: { HOME: home, PATH: process.env['PATH'] ?? '', TERM: 'dumb', ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A group of its own, so that what it starts ends with it.
    detached: true,
  })
  let output = ''
  const keep = (chunk: Buffer): void => void (output += chunk.toString())
  child.stdout.on('data', keep)
  child.stderr.on('data', keep)
  const over = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve(code))
  })
  const signal = (kind: NodeJS.Signals): void => {
    if (child.pid === undefined) return
    try {
      process.kill(-child.pid, kind)
    } catch {
      // It has ended.
    }
  }
  const timer = setTimeout(() => signal('SIGKILL'), LONGEST_RUN_MS)
  t.after(async () => {
    clearTimeout(timer)
    signal('SIGKILL')
    await over.catch(() => null)
  })
  return { output: () => output, over, interrupt: () => signal('SIGINT') }
}

/** A request as an agent sent it, and what came back so far. */
export interface SeenRequest {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
  answer: string
  /** When the agent closed the connection before the end of the answer. By `performance.now`. */
  leftAt: number | undefined
}

/** A proxy in front of the service that writes down what an agent sends and gets. Nothing is changed on the way. */
export interface Recorder {
  readonly url: string
  readonly seen: SeenRequest[]
}

export async function recorder(t: TestContext, target: string): Promise<Recorder> {
  const seen: SeenRequest[] = []
  const server = createServer((incoming, response) => {
    const { method = '', url = '/', headers } = incoming
    const pieces: Buffer[] = []
    let entry: SeenRequest | undefined
    const outgoing = forward(new URL(url, target), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.on('data', (piece: Buffer) => {
        if (entry) entry.answer += piece.toString()
        response.write(piece)
      })
      answer.once('end', () => response.end())
    })
    outgoing.on('error', () => response.destroy())
    response.once('close', () => {
      if (entry && !response.writableEnded) entry.leftAt = performance.now()
      outgoing.destroy()
    })
    incoming.on('data', (piece: Buffer) => {
      pieces.push(piece)
      outgoing.write(piece)
    })
    incoming.on('end', () => {
      const body = Buffer.concat(pieces).toString()
      seen.push((entry = { method, path: url, headers, body, answer: '', leftAt: undefined }))
      outgoing.end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    return new Promise<void>((resolve) => server.close(() => resolve()))
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen }
}
