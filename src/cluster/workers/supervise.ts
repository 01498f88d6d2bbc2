import { fork, type ChildProcess } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { backoffMs } from '../../shared/backoff.ts'
import type { FromWorker } from './messages.ts'
import { sharedPort } from './shared-port.ts'

/**
 * Runs several replicas as processes of this machine, which share a port.
 * See docs/decisions/2026-11-16-workers.md for the reasons.
 */
export interface WorkersOptions {
  readonly count: number
  /** The program and its arguments. `--worker NUMBER/COUNT` is added. */
  readonly program: string
  readonly args: readonly string[]
  readonly events: WorkerEvents
}

export interface WorkerEvents {
  /** A worker has ended, and is replaced after `againInMs`. */
  ended(worker: number, how: string, againInMs: number): void
}

export interface Workers {
  /** Resolves when the first worker runs and the others are starting. Rejects if the first one cannot run; then none runs. */
  readonly started: Promise<void>
  /** Passes a signal on to every worker. */
  signal(name: NodeJS.Signals): void
  /** The first worker reads its files again, and notifies the others. */
  reload(): void
  /** Lets every worker finish, and resolves when all have ended. */
  stop(signal: NodeJS.Signals): Promise<void>
}

const FIRST_WAIT_MS = 500
const WAIT_MS_MAX = 30_000
/** A worker that ran for this long did not fail at its start. */
const STEADY_MS = 60_000

export function startWorkers({ count, program, args, events }: WorkersOptions): Workers {
  const workers = new Map<number, ChildProcess>()
  const port = sharedPort()
  const stopping = new AbortController()
  const firstRuns = Promise.withResolvers<void>()
  const lives: Promise<void>[] = []
  /** The first worker has. */
  let hasRun = false

  /** Keeps one worker running. A replacement uses the same directory, so it settles the requests that the old one left open. */
  async function keep(number: number): Promise<void> {
    /** In a row. */
    let failures = 0
    while (!stopping.signal.aborted) {
      const startedAtMs = performance.now()
      const { code, how } = await live(number)
      if (!hasRun) firstRuns.reject(new Error(`the first worker ${how} before it could serve`))
      if (stopping.signal.aborted || !hasRun) return
      if (code === 0) failures = 0
      else failures = performance.now() - startedAtMs > STEADY_MS ? 1 : failures + 1
      // A worker that was asked to leave is replaced at once.
      const waitMs = failures === 0 ? 0 : backoffMs(failures, FIRST_WAIT_MS, WAIT_MS_MAX)
      events.ended(number, how, waitMs)
      await sleep(waitMs, undefined, { signal: stopping.signal }).catch(() => {})
    }
  }

  /** One process, from its start to its end. */
  async function live(number: number): Promise<{ code: number | null; how: string }> {
    const worker = fork(program, [...args, '--worker', `${number}/${count}`])
    workers.set(number, worker)
    port.serve(worker)
    worker.on('message', ({ kind }: FromWorker) => {
      if (kind !== 'running') return
      hasRun = true
      firstRuns.resolve()
    })
    const end = Promise.withResolvers<{ code: number | null; how: string }>()
    worker.on('exit', (code, signal) =>
      end.resolve({ code, how: signal ? `was ended by ${signal}` : `ended with status ${code}` }),
    )
    // A signal that cannot be sent is an error too, but the worker runs on.
    worker.on('error', ({ message }) => worker.pid ?? end.resolve({ code: null, how: `did not start (${message})` }))
    return end.promise.finally(() => workers.delete(number))
  }

  const signal = (name: NodeJS.Signals): void => workers.forEach((worker) => worker.kill(name))

  lives.push(keep(1))
  // The first worker migrates the database before the others open it.
  const started = firstRuns.promise.then(
    () => void lives.push(...Array.from({ length: count - 1 }, (_, index) => keep(index + 2))),
  )
  return {
    started,
    signal,
    reload: () => void workers.get(1)?.kill('SIGHUP'),
    async stop(name) {
      stopping.abort()
      port.close()
      signal(name)
      await Promise.all(lives)
    },
  }
}
