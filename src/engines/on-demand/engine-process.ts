import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { request } from 'undici'
import type { EngineLog } from './engine-log.ts'
import { isGroupRunning, signalGroup } from './process-group.ts'
import { writeRecord } from './process-record.ts'

/** The process of an engine, with all that it starts. */
export interface EngineProcess {
  /** The process group; -1: it could not be started. */
  readonly group: number
  /** Resolves with the reason, and never rejects, when all of its processes are gone. */
  readonly ended: Promise<string>
  /** Resolves only if some are still there seconds after they were killed, such as one that waits for a broken device. */
  readonly lingers: Promise<void>
  /** Asks it to end, and kills it if it does not. */
  stop(): void
}

export interface EngineProgram {
  readonly command: readonly string[]
  readonly env: NodeJS.ProcessEnv
  readonly log: EngineLog
  /** The file that names the process while it runs. */
  readonly recordFile: string
}

const guardian = fileURLToPath(new URL('guardian.ts', import.meta.url))
/** How long an engine has to end by itself. */
const STOP_GRACE_MS = 10_000
const POLL_MS = 100
const MAX_POLLS = 50
/** How long it takes at most until all that a dead engine has left is known to be gone, unless it lingers. */
export const MAX_END_MS = 2 * POLL_MS * MAX_POLLS
const PROBE_MS = 2000

export function startEngineProcess({ command, env, log, recordFile }: EngineProgram): EngineProcess {
  const child = spawn(process.execPath, [guardian], { detached: true, stdio: ['pipe', 'pipe', 'pipe', 'pipe'] })
  const { promise: ended, resolve } = Promise.withResolvers<string>()
  const { promise: lingers, resolve: linger } = Promise.withResolvers<void>()
  const { pid } = child
  let reason = 'ended'
  let killer: NodeJS.Timeout | undefined
  child.on('error', ({ message }) => {
    reason = `could not be run: ${message}`
    if (pid === undefined) resolve(reason)
  })
  const [stdin, stdout, stderr, reports] = child.stdio
  // It may have ended before it reads.
  stdin?.on('error', () => {})
  stdin?.write(`${JSON.stringify({ command, env })}\n`)
  for (const output of [stdout, stderr]) output?.on('data', log.write)
  createInterface(reports as Readable).on('line', (line) => {
    const news = JSON.parse(line) as { readonly pid?: number; readonly end?: string }
    if (news.pid !== undefined && pid !== undefined) writeRecord(recordFile, pid, news.pid)
    reason = news.end ?? reason
  })
  child.once('exit', () => void gone())

  async function gone(): Promise<void> {
    clearTimeout(killer)
    // Its last lines and its report are still on their way.
    const closed = once(child, 'close')
    // If the guardian was killed, the engine is still there.
    const isThere = async (): Promise<boolean> =>
      pid !== undefined && signalGroup(pid, 'SIGKILL') && (await isGroupRunning(pid))
    await untilGone(isThere, linger)
    await Promise.race([closed, sleep(POLL_MS * MAX_POLLS, undefined, { ref: false })])
    rmSync(recordFile, { force: true })
    resolve(reason)
  }

  return {
    group: pid ?? -1,
    ended,
    lingers,
    stop() {
      if (pid === undefined || killer) return
      signalGroup(pid, 'SIGTERM')
      killer = setTimeout(() => signalGroup(pid, 'SIGKILL'), STOP_GRACE_MS)
    },
  }
}

/** What is killed has its memory until it is gone, however long that takes. */
export async function untilGone(
  isThere: () => Promise<boolean>,
  linger: () => void,
  pause = () => sleep(POLL_MS),
): Promise<void> {
  for (let polls = 1; await isThere(); polls++) {
    if (polls === MAX_POLLS) linger()
    await pause()
  }
}

/** Whether the server answers with a status from 200 to 299. */
export async function answersWell(url: string, method: 'GET' | 'POST', timeoutMs = PROBE_MS): Promise<boolean> {
  try {
    const { statusCode, body } = await request(url, { method, signal: AbortSignal.timeout(timeoutMs) })
    await body.dump()
    return statusCode >= 200 && statusCode < 300
  } catch {
    return false
  }
}
