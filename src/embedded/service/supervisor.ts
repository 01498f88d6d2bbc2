import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import type { RuntimeName } from '../manifest/types.ts'

export interface SupervisorOptions {
  /** Sockets are made here. Keep it short: a unix socket's path may have about 100 characters. */
  socketDirectory: string
  modelsDirectory: string
  /** A JSON list of the operator's own models (`ManifestModel`). */
  manifestPath?: string
  threads?: number
  parallelRequests?: number
  memoryBudgetBytes?: number
  log: (entry: { runtime: RuntimeName; level: 'info' | 'warn'; message: string }) => void
}

export interface EngineSupervisor {
  /** Path of the runtime's socket; starts the host when it is not running. Rejects when it keeps crashing. */
  socket(runtime: RuntimeName): Promise<string>
  /** Where the socket is or will be; starts nothing. */
  socketPath(runtime: RuntimeName): string
  status(): Record<RuntimeName, HostStatus>
  /** Lets requests in flight finish for `graceMs`, then ends the hosts. */
  stop(graceMs?: number): Promise<void>
}

export interface HostStatus {
  state: 'off' | 'starting' | 'running' | 'backing-off'
  pid?: number
  restarts: number
}

interface Host {
  child?: ChildProcess
  ready?: Promise<void>
  running: boolean
  restarts: number
  /** Crashes in a row: a host that lived long enough starts again from none. */
  crashes: number
  retryAt: number
  gpu: boolean
}

const hostProgram = join(import.meta.dirname, '../host/host.ts')
const readyMsMax = 60_000
const healthyMs = 30_000
/** The longest backoff a request waits for. */
const patienceMs = 5000
const backoffMs = (crashes: number) => Math.min(30_000, 250 * 2 ** (crashes - 1))

/** One host process per runtime, started on first use, restarted with backoff. Its death never reaches this process. */
export function engineSupervisor(options: SupervisorOptions): EngineSupervisor {
  const { socketDirectory, log } = options
  const hosts: Record<RuntimeName, Host> = { onnx: newHost(), llama: newHost() }
  const runtimes = Object.keys(hosts) as RuntimeName[]
  let stopping = false

  const socketPath = (runtime: RuntimeName) => join(socketDirectory, `${runtime}-${process.pid}.sock`)

  async function start(runtime: RuntimeName): Promise<void> {
    const host = hosts[runtime]
    await mkdir(socketDirectory, { recursive: true, mode: 0o700 })
    const child = fork(hostProgram, hostArguments(runtime, socketPath(runtime), options, host.gpu), {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      execArgv: [],
    })
    host.child = child
    // Without a listener a failed spawn would throw in this process.
    child.on('error', (error) => log({ runtime, level: 'warn', message: error.message }))
    relayLines(child, (message) => log({ runtime, level: 'info', message }))
    const startedAt = Date.now()
    const exited = once(child, 'exit') as Promise<[code: number | null, signal: string | null]>
    exited.then(
      ([code, signal]) => ended(runtime, startedAt, code, signal),
      (error: Error) => ended(runtime, startedAt, null, error.message),
    )
    await becomesReady(child, exited)
    host.running = true
  }

  function ended(runtime: RuntimeName, startedAt: number, code: number | null, signal: string | null): void {
    const host = hosts[runtime]
    host.running = false
    delete host.child
    delete host.ready
    if (stopping || code === 0) return
    host.crashes = Date.now() - startedAt > healthyMs ? 1 : host.crashes + 1
    host.retryAt = Date.now() + backoffMs(host.crashes)
    host.restarts++
    // Native code ends itself so when a GPU or its driver fails it, at every request alike; the processor can do the work.
    if (host.crashes > 1 && (signal === 'SIGABRT' || signal === 'SIGSEGV')) host.gpu = false
    const how = `after ${backoffMs(host.crashes)} ms${host.gpu ? '' : ', without a GPU'}`
    log({ runtime, level: 'warn', message: `engine host ended (${signal ?? code}), restarts ${how}` })
  }

  /** A short backoff is waited out, so the request after a crash works; a long one is refused at once. */
  async function restart(runtime: RuntimeName): Promise<void> {
    const host = hosts[runtime]
    const waitMs = host.retryAt - Date.now()
    if (waitMs > patienceMs) {
      throw new Error(`the ${runtime} engine host keeps crashing; next start in ${Math.ceil(waitMs / 1000)} s`)
    }
    if (waitMs > 0) await setTimeout(waitMs)
    await start(runtime)
  }

  /** The kernel closes a dead host's socket before this process hears of the death; wait until it has. */
  async function gone(runtime: RuntimeName): Promise<RuntimeName> {
    const { child } = hosts[runtime]
    if (child) await once(child, 'exit')
    return runtime
  }

  return {
    socketPath,
    async socket(runtime) {
      const host = hosts[runtime]
      if (stopping) throw new Error('the engine supervisor is stopping')
      const ready = (host.ready ??= restart(runtime))
      try {
        await ready
        if (!(await isListening(socketPath(runtime)))) return await this.socket(await gone(runtime))
      } catch (error) {
        if (host.ready === ready) delete host.ready
        throw error
      }
      return socketPath(runtime)
    },
    status() {
      return { onnx: statusOf(hosts.onnx), llama: statusOf(hosts.llama) }
    },
    async stop(graceMs = 5000) {
      stopping = true
      await Promise.all(runtimes.map((runtime) => stopChild(hosts[runtime].child, graceMs)))
      await Promise.all(runtimes.map((runtime) => rm(socketPath(runtime), { force: true })))
    },
  }
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

function newHost(): Host {
  return { running: false, restarts: 0, crashes: 0, retryAt: 0, gpu: true }
}

function statusOf(host: Host): HostStatus {
  const state = host.running ? 'running' : host.ready ? 'starting' : Date.now() < host.retryAt ? 'backing-off' : 'off'
  const pid = host.child?.pid
  return { state, restarts: host.restarts, ...(pid === undefined ? {} : { pid }) }
}

function hostArguments(runtime: RuntimeName, socket: string, options: SupervisorOptions, gpu: boolean): string[] {
  const optional: [name: string, value: number | string | undefined][] = [
    ['--manifest', options.manifestPath],
    ['--threads', options.threads],
    ['--parallel', options.parallelRequests],
    ['--memory-budget', options.memoryBudgetBytes],
  ]
  const given = optional.flatMap(([name, value]) => (value === undefined ? [] : [name, String(value)]))
  const places = ['--socket', socket, '--models', options.modelsDirectory]
  return ['--runtime', runtime, ...places, ...given, ...(gpu ? [] : ['--no-gpu'])]
}

async function becomesReady(child: ChildProcess, exited: Promise<unknown>): Promise<void> {
  const cancel = new AbortController()
  const ready = once(child, 'message', { signal: AbortSignal.any([cancel.signal, AbortSignal.timeout(readyMsMax)]) })
  const diedEarly = exited.then(() => Promise.reject(new Error('the engine host ended before it was ready')))
  try {
    await Promise.race([ready, diedEarly])
  } catch (error) {
    child.kill('SIGKILL')
    throw error
  } finally {
    diedEarly.catch(() => {})
    ready.catch(() => {})
    cancel.abort()
  }
}

function relayLines(child: ChildProcess, send: (line: string) => void): void {
  for (const stream of [child.stdout, child.stderr]) {
    if (stream) createInterface({ input: stream }).on('line', send)
  }
}

async function stopChild(child: ChildProcess | undefined, graceMs: number): Promise<void> {
  if (!child || child.exitCode !== null || child.signalCode !== null) return
  const exit = once(child, 'exit')
  child.kill('SIGTERM')
  const timer = new AbortController()
  const killer = setTimeout(graceMs, undefined, { signal: timer.signal }).then(
    () => child.kill('SIGKILL'),
    () => false,
  )
  await exit
  timer.abort()
  await killer
}
