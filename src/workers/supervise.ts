import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Several replicas as processes of this machine, which accept connections from one listening socket.
 * docs/decisions/2026-11-16-workers.md says why.
 */
export interface WorkersOptions {
  readonly count: number
  /** The program and its arguments. `--worker NUMBER/COUNT` is added. */
  readonly program: string
  readonly args: readonly string[]
  readonly events: WorkerEvents
}

export interface WorkerEvents {
  /** A worker has ended, and another one takes its place. */
  ended(worker: number, how: string, againInMs: number): void
}

export interface Workers {
  /** Resolves when the first worker runs and the others start. Rejects if it cannot run: then there are none. */
  readonly started: Promise<void>
  /** Passes a signal on to every worker. */
  signal(name: NodeJS.Signals): void
  /** The first worker reads its files again, and tells the others. */
  reload(): void
  /** Lets every worker finish, and resolves when all have ended. */
  stop(signal: NodeJS.Signals): Promise<void>
}

const FIRST_WAIT_MS = 500
const WAIT_MS_MAX = 30_000
/** Whoever ran for so long did not fail at its start. */
const STEADY_MS = 60_000

/** What a worker sends when its service runs. */
export const RUNNING = 'running'

export function startWorkers({ count, program, args, events }: WorkersOptions): Workers {
  const workers = new Map<number, Worker>()
  const stopping = new AbortController()
  const firstRuns = Promise.withResolvers<void>()
  const lives: Promise<void>[] = []
  // Every worker accepts from one listening socket, which outlives each of them.
  cluster.schedulingPolicy = cluster.SCHED_NONE

  /** Keeps one worker running. Its successor works in the same directory, and so settles what it left. */
  async function keep(number: number): Promise<void> {
    let waitMs = FIRST_WAIT_MS
    while (!stopping.signal.aborted) {
      const startedAtMs = performance.now()
      const { code, how, hasRun } = await live(number)
      if (number === 1) firstRuns.reject(new Error(`the first worker ${how} before it could serve`))
      if (stopping.signal.aborted || (number === 1 && !hasRun && lives.length === 1)) return
      // One that was asked to leave is replaced at once.
      if (code === 0) waitMs = 0
      else if (performance.now() - startedAtMs > STEADY_MS) waitMs = FIRST_WAIT_MS
      events.ended(number, how, waitMs)
      await sleep(waitMs, undefined, { signal: stopping.signal }).catch(() => {})
      waitMs = Math.min(Math.max(FIRST_WAIT_MS, waitMs * 2), WAIT_MS_MAX)
    }
  }

  /** One process, from its start to its end. */
  async function live(number: number): Promise<{ code: number | null; how: string; hasRun: boolean }> {
    cluster.setupPrimary({ exec: program, args: [...args, '--worker', `${number}/${count}`] })
    const worker = cluster.fork()
    let hasRun = false
    workers.set(number, worker)
    worker.on('message', (message) => {
      if (message !== RUNNING) return
      hasRun = true
      if (number === 1) firstRuns.resolve()
    })
    // Without a listener, a message that cannot be sent to a dead worker would end this process.
    worker.on('error', () => {})
    const [code, signal] = (await once(worker, 'exit')) as [number | null, NodeJS.Signals | null]
    workers.delete(number)
    return { code, how: signal ? `was ended by ${signal}` : `ended with status ${code}`, hasRun }
  }

  const signal = (name: NodeJS.Signals): void => workers.forEach((worker) => worker.process.kill(name))

  lives.push(keep(1))
  // The first one brings the database up to date before the others look at it.
  const started = firstRuns.promise.then(() => {
    for (let number = 2; number <= count && !stopping.signal.aborted; number += 1) lives.push(keep(number))
  })
  return {
    started,
    signal,
    reload: () => void workers.get(1)?.process.kill('SIGHUP'),
    async stop(name) {
      stopping.abort()
      signal(name)
      await Promise.all(lives)
    },
  }
}
