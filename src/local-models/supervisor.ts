import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client, type Dispatcher } from 'undici'
import { backoffMs } from '../shared/backoff.ts'
import type { LoadedModel, RuntimeName } from '../../packages/local-models/contract.ts'

export interface SupervisorOptions {
  /** The program that each host runs. */
  readonly hostProgram: string
  /** The sockets are created here. Keep the path short: a unix socket's path is limited to about 100 characters. */
  readonly socketDirectory: string
  readonly modelsDirectory: string
  readonly threads: number
  readonly parallelRequests: number
  readonly memoryBudgetBytes: number
  log(entry: { readonly runtime: RuntimeName; readonly level: 'info' | 'warn'; readonly message: string }): void
}

export interface EngineSupervisor {
  /** The socket of the runtime's host. Starts the host if it is not running; rejects while it keeps crashing. */
  socket(runtime: RuntimeName): Promise<string>
  /** The path of that socket, whether or not the host is running. */
  socketPath(runtime: RuntimeName): string
  /** The models in the memory of a running host. */
  loaded(runtime: RuntimeName): Promise<readonly LoadedModel[]>
  /** Frees the memory of a model, once its requests have ended. */
  unload(runtime: RuntimeName, slug: string): Promise<void>
  /** Gives requests in flight a few seconds to finish, then ends the hosts. */
  stop(): Promise<void>
}

interface Host {
  child?: ChildProcess
  /** Resolves when the host is listening. Unset while none is running or starting. */
  ready?: Promise<void>
  /** Crashes in a row. A host that ran long enough starts counting from zero again. */
  crashes: number
  retryAt: number
  gpu: boolean
}

const MAX_START_MS = 60_000
/** A crash after this long is not counted with the ones before it. */
const HEALTHY_MS = 30_000
/** A request waits out a backoff up to this long. */
const MAX_PATIENCE_MS = 5000
const FIRST_BACKOFF_MS = 250
const MAX_BACKOFF_MS = 30_000
const STOP_GRACE_MS = 5000
/** How long a host has to answer a question about itself. It may be computing. */
const ANSWER_MS = 2000

/**
 * Runs one host process for each runtime. A host starts with its first request and again, after a backoff, with the
 * first request after a crash. A crashing host never crashes this process.
 */
export function engineSupervisor(options: SupervisorOptions): EngineSupervisor {
  const { socketDirectory, log } = options
  const hosts: Readonly<Record<RuntimeName, Host>> = { onnx: newHost(), llama: newHost() }
  const runtimes = Object.keys(hosts) as RuntimeName[]
  let stopping = false

  const socketPath = (runtime: RuntimeName): string => join(socketDirectory, `${runtime}-${process.pid}.sock`)

  function requireRunning(): void {
    if (stopping) throw new Error('the engine supervisor is stopping')
  }

  async function start(runtime: RuntimeName): Promise<void> {
    requireRunning()
    const host = hosts[runtime]
    mkdirSync(socketDirectory, { recursive: true, mode: 0o700 })
    const child = fork(options.hostProgram, hostArguments(runtime, socketPath(runtime), options, host.gpu), {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      execArgv: [],
    })
    host.child = child
    // Without a listener, a failed spawn would throw in this process.
    child.on('error', (error) => log({ runtime, level: 'warn', message: error.message }))
    relayLines(child, (message) => log({ runtime, level: 'info', message }))
    const startedAt = Date.now()
    const exited = once(child, 'exit') as Promise<[code: number | null, signal: string | null]>
    exited.then(
      ([code, signal]) => ended(runtime, startedAt, code, signal),
      (error: Error) => ended(runtime, startedAt, null, error.message),
    )
    await becomesReady(child, exited)
  }

  function ended(runtime: RuntimeName, startedAt: number, code: number | null, signal: string | null): void {
    const host = hosts[runtime]
    delete host.child
    delete host.ready
    if (stopping || code === 0) return
    host.crashes = Date.now() - startedAt > HEALTHY_MS ? 1 : host.crashes + 1
    const pauseMs = backoffMs(host.crashes, FIRST_BACKOFF_MS, MAX_BACKOFF_MS)
    host.retryAt = Date.now() + pauseMs
    // A failing GPU or driver makes native code abort, and it would fail every request. The CPU can do the work.
    if (host.crashes > 1 && (signal === 'SIGABRT' || signal === 'SIGSEGV')) host.gpu = false
    const next = `can start again in ${pauseMs} ms${host.gpu ? '' : ', without the GPU'}`
    log({ runtime, level: 'warn', message: `engine host ended (${signal ?? code}); ${next}` })
  }

  /** Waits out a short backoff, so that the request after a crash succeeds. Refuses immediately during a long one. */
  async function startAfterBackoff(runtime: RuntimeName): Promise<void> {
    const waitMs = hosts[runtime].retryAt - Date.now()
    if (waitMs > MAX_PATIENCE_MS) {
      throw new Error(`the ${runtime} engine host keeps crashing; it starts again in ${Math.ceil(waitMs / 1000)} s`)
    }
    if (waitMs > 0) await sleep(waitMs)
    await start(runtime)
  }

  async function socket(runtime: RuntimeName): Promise<string> {
    requireRunning()
    const host = hosts[runtime]
    const ready = (host.ready ??= startAfterBackoff(runtime))
    try {
      await ready
    } catch (error) {
      if (host.ready === ready) delete host.ready
      throw error
    }
    if (await isListening(socketPath(runtime))) return socketPath(runtime)
    // The kernel closes the socket of a dead host before this process is notified of its exit.
    if (host.child) await once(host.child, 'exit')
    return socket(runtime)
  }

  /** undefined if no host answers. */
  async function ask(runtime: RuntimeName, request: Dispatcher.RequestOptions): Promise<unknown> {
    const client = new Client('http://host', { socketPath: socketPath(runtime) })
    try {
      const answer = await client.request({ ...request, signal: AbortSignal.timeout(ANSWER_MS) })
      return await answer.body.json()
    } catch {
      return undefined
    } finally {
      await client.destroy()
    }
  }

  return {
    socket,
    socketPath,
    async loaded(runtime) {
      const health = (await ask(runtime, { method: 'GET', path: '/health' })) as
        | { readonly loaded: readonly LoadedModel[] }
        | undefined
      return health?.loaded ?? []
    },
    async unload(runtime, slug) {
      await ask(runtime, { method: 'POST', path: '/unload', body: JSON.stringify({ model: slug }) })
    },
    async stop() {
      stopping = true
      await Promise.all(runtimes.map((runtime) => stopChild(hosts[runtime].child)))
      await Promise.all(runtimes.map((runtime) => rm(socketPath(runtime), { force: true })))
    },
  }
}

function newHost(): Host {
  return { crashes: 0, retryAt: 0, gpu: true }
}

function hostArguments(runtime: RuntimeName, socket: string, options: SupervisorOptions, gpu: boolean): string[] {
  return [
    `--runtime=${runtime}`,
    `--socket=${socket}`,
    `--models=${options.modelsDirectory}`,
    `--threads=${options.threads}`,
    `--parallel=${options.parallelRequests}`,
    `--memory-budget=${options.memoryBudgetBytes}`,
    ...(gpu ? [] : ['--no-gpu']),
  ]
}

async function isListening(socketPath: string): Promise<boolean> {
  const probe = connect(socketPath)
  try {
    await once(probe, 'connect')
    return true
  } catch {
    return false
  } finally {
    probe.destroy()
  }
}

async function becomesReady(child: ChildProcess, exited: Promise<unknown>): Promise<void> {
  const ready = once(child, 'message', { signal: AbortSignal.timeout(MAX_START_MS) })
  const diedEarly = exited.then(() => Promise.reject(new Error('the engine host ended before it was ready')))
  try {
    await Promise.race([ready, diedEarly])
  } catch (error) {
    child.kill('SIGKILL')
    throw error
  }
}

function relayLines(child: ChildProcess, send: (line: string) => void): void {
  for (const stream of [child.stdout, child.stderr]) {
    if (stream) createInterface({ input: stream }).on('line', send)
  }
}

async function stopChild(child: ChildProcess | undefined): Promise<void> {
  if (!child || child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  const killer = setTimeout(() => child.kill('SIGKILL'), STOP_GRACE_MS)
  await exited
  clearTimeout(killer)
}
