import { once } from 'node:events'
import { readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'undici'
import type { PendingSetting, SettingsAnswer } from '../shared/settings.ts'
import type { CacheUseEntry } from '../engines/cache-use.ts'
import type { ContradictedCounts } from '../engines/contradicted-counts.ts'
import type { CoordinationState } from '../cluster/coordination.ts'
import type { MetricFamily } from './telemetry/metrics.ts'
import { isServiceRunning } from '../store/sqlite/service-lock.ts'
import { mergedCacheUse } from '../engines/merged-cache-use.ts'
import { serviceDirectories } from '../cluster/workers/directories.ts'

/**
 * How commands reach the service that runs on the same data directory. The service listens on a unix socket, which only
 * its own user can open, and writes the address to a file. A command that changed something asks the service to reload
 * before it ends, so a key that was revoked is refused from the moment `weir keys revoke` returns.
 */
export interface ServiceNote {
  readonly url: string
  readonly adminUrl: string
  readonly socket: string
  readonly pid: number
}

export interface ReplicaListing {
  readonly coordination: CoordinationState
  readonly data: readonly {
    readonly name: string
    readonly version: string
    readonly started_at: string
    readonly epoch: string | null
    readonly in_flight_requests: number
    readonly queue_depth: number
    readonly journal_bytes: number
    readonly journal_lag_ms: number
    readonly draining: boolean
  }[]
}

/** An engine that starts when it is needed, as GET /admin/v1/engines shows it. */
export interface EngineListing {
  readonly lane: string
  readonly state: string
  readonly waiting: number
  readonly running: number
  readonly pinned: boolean
  readonly device: string | null
  readonly needed_bytes: number
  readonly memory_source: string | null
  readonly measured_bytes: number | null
  readonly held_bytes: number
  readonly start_ms: readonly number[]
  readonly problem: string | null
  readonly last_lines: readonly string[]
}

export interface RemovedModel {
  readonly removed: readonly string[]
  readonly alsoGone: readonly string[]
  readonly freedBytes: number
}

/** The answer to a command. */
export type ReloadAnswer =
  | {
      readonly reloaded: true
      readonly models?: number
      readonly unreached?: readonly string[]
      readonly needs_restart?: readonly PendingSetting[]
    }
  | { readonly error: string }

/** How long a service that is starting or stopping has to answer, or to exit. */
const PATIENCE_MS = 30_000
const POLL_MS = 100
const ANSWER_MS = 20_000
/** A short timeout, because a metrics scrape must not wait long. */
const METRICS_MS = 2000

/** The service behind a socket does not use it. */
const ORIGIN = 'http://localhost'

const noteIn = (dataDir: string): string => join(dataDir, 'service.json')

export function publishService(dataDir: string, note: ServiceNote): void {
  writeFileSync(noteIn(dataDir), JSON.stringify(note), { mode: 0o600 })
}

/** Also removes the socket, in case the service was killed. */
export function withdrawService(dataDir: string): void {
  const socket = readNote(dataDir)?.socket
  if (socket !== undefined) removeSocket(socket, dataDir)
  rmSync(noteIn(dataDir), { force: true })
}

/** The address file of the service that runs on a data directory. A killed service leaves the file, but no lock. */
export function findService(dataDir: string): ServiceNote | undefined {
  return findServices(dataDir)[0]
}

/** Several if the service has workers. */
function findServices(dataDir: string): readonly ServiceNote[] {
  return serviceDirectories(dataDir)
    .filter(isServiceRunning)
    .flatMap((directory) => readNote(directory) ?? [])
}

/**
 * Asks the service to reload. Resolves with its answer, or with undefined if no service is running. A service that is
 * just starting may have read the old state, so this waits for it.
 */
export async function requestReload(
  dataDir: string,
  reload: 'accounts' | 'catalog',
  { force } = { force: false },
): Promise<ReloadAnswer | undefined> {
  return (await postWithRetries(dataDir, `/${reload}${force ? '?force=true' : ''}`)) as ReloadAnswer | undefined
}

/** Retries until the service, or one of its workers, answers, or all have exited: then undefined. */
async function postWithRetries(dataDir: string, path: string): Promise<unknown> {
  const until = performance.now() + PATIENCE_MS
  for (;;) {
    const running = serviceDirectories(dataDir).filter(isServiceRunning)
    if (running.length === 0) return undefined
    for (const directory of running) {
      const socket = readNote(directory)?.socket
      const answered = socket === undefined ? undefined : await request(socket, 'POST', path)
      if (answered) return answered
    }
    if (performance.now() > until) throw failure('the running service does not answer; restart it')
    await sleep(POLL_MS)
  }
}

/**
 * Resolves when a running service and its replicas have seen the change, with the replicas that did not answer;
 * undefined when no service is running here.
 */
export async function refreshService(dataDir: string): Promise<readonly string[] | undefined> {
  const answered = await requestReload(dataDir, 'accounts')
  if (answered && 'error' in answered) {
    throw failure(`the running service did not take the change (${answered.error}); restart it`)
  }
  return answered && (answered.unreached ?? [])
}

/** Makes a running service write every durable row to the database. False when none is running. */
export async function settleRunningService(dataDir: string): Promise<boolean> {
  // Each worker has a journal of its own.
  const running = serviceDirectories(dataDir).filter(isServiceRunning)
  const answers = (await Promise.all(running.map((directory) => postWithRetries(directory, '/settled')))) as (
    | { readonly error?: string }
    | undefined
  )[]
  const reason = answers.find((answered) => answered?.error !== undefined)?.error
  if (reason !== undefined) {
    throw failure(`the running service cannot bring its rows into the database (${reason}); see its log`)
  }
  return answers.some((answered) => answered !== undefined)
}

/** The metrics of the service on exactly this directory; undefined if it does not answer. */
export async function fetchMetrics(directory: string): Promise<readonly MetricFamily[] | undefined> {
  const socket = isServiceRunning(directory) ? readNote(directory)?.socket : undefined
  const answered = socket === undefined ? undefined : await request(socket, 'GET', '/metric-families', METRICS_MS)
  return (answered as { families?: readonly MetricFamily[] } | undefined)?.families
}

/** The engines of the running service whose counts contradict the text. Empty when no service is running. */
export async function contradictedCountsOf(dataDir: string): Promise<readonly ContradictedCounts[]> {
  const answers = await Promise.all(findServices(dataDir).map(({ socket }) => request(socket, 'GET', '/counts')))
  return answers.flatMap((answered) => (answered as Partial<CountsAnswer> | undefined)?.counts ?? [])
}

/** How much of its input was cached, by key and model, since the running service started; undefined when none is running. */
export async function cacheUseOf(dataDir: string): Promise<readonly CacheUseEntry[] | undefined> {
  const answers = await Promise.all(findServices(dataDir).map(({ socket }) => request(socket, 'GET', '/cache-use')))
  const entries = answers.flatMap((it) => (it as { entries?: readonly CacheUseEntry[] } | undefined)?.entries ?? [])
  return answers.some((it) => it !== undefined) ? mergedCacheUse(entries) : undefined
}

/** Lets the metrics of the running service show the result, if one is running. */
export async function reportReconciliation(dataDir: string, problems: number): Promise<void> {
  await requestFromAny(dataDir, 'POST', `/reconciled?${new URLSearchParams({ problems: String(problems) }).toString()}`)
}

/** The replicas, as the running service knows them; undefined when none is running. */
export async function replicasOf(dataDir: string): Promise<ReplicaListing | undefined> {
  return (await requestFromAny(dataDir, 'GET', '/replicas')) as ReplicaListing | undefined
}

/** Undefined when no service is running. */
export async function drainReplica(
  dataDir: string,
  order: { readonly name: string; readonly actor: string },
): Promise<{ readonly asked: true } | { readonly error: string } | undefined> {
  const answered = await requestFromAny(dataDir, 'POST', `/drain?${new URLSearchParams(order).toString()}`)
  return answered as { asked: true } | { error: string } | undefined
}

/** The engines that the running service starts when they are needed; undefined when none is running. */
export async function enginesOf(dataDir: string): Promise<readonly EngineListing[] | undefined> {
  const answered = await requestFromAny(dataDir, 'GET', '/engines')
  return (answered as { engines?: readonly EngineListing[] } | undefined)?.engines
}

/** Undefined when no service is running. */
export async function orderEngineOf(
  dataDir: string,
  order: { readonly lane: string; readonly order: string; readonly actor: string },
): Promise<{ readonly given: true } | { readonly error: string } | undefined> {
  const answered = await requestFromAny(dataDir, 'POST', `/engine-order?${new URLSearchParams(order).toString()}`)
  return answered as { given: true } | { error: string } | undefined
}

/** Removes a local model, unless it is in use. undefined when no service is running. */
export async function removeModelOf(
  dataDir: string,
  model: string,
): Promise<RemovedModel | { readonly error: string } | undefined> {
  const answered = await requestFromAny(dataDir, 'POST', `/remove-model?${new URLSearchParams({ model }).toString()}`)
  return answered as RemovedModel | { error: string } | undefined
}

/** A link that signs in to a console, once: of a workspace, or of the operator. undefined when no service is running. */
export async function consoleLinkOf(
  dataDir: string,
  workspace: string | undefined,
): Promise<{ readonly url: string } | { readonly error: string } | undefined> {
  const query = workspace === undefined ? '' : `?${new URLSearchParams({ workspace }).toString()}`
  const answered = await requestFromAny(dataDir, 'POST', `/console-link${query}`)
  return answered as { url: string } | { error: string } | undefined
}

interface CountsAnswer {
  readonly counts: readonly ContradictedCounts[]
}

/** undefined when no service is running. */
export async function settingsInForce(dataDir: string): Promise<SettingsAnswer | undefined> {
  const answered = (await requestFromAny(dataDir, 'GET', '/settings')) as Partial<SettingsAnswer> | undefined
  return answered?.settings && (answered as SettingsAnswer)
}

type Borrowed = { readonly key: string; end(): Promise<void> } | { readonly error: string }

/** A key of the running service that expires with this process, however it ends. It is not stored. */
export async function borrowKey(dataDir: string, workspace: string): Promise<Borrowed | undefined> {
  const [first, ...others] = findServices(dataDir)
  const lent = first && (await borrowFrom(first, workspace))
  if (!lent || 'error' in lent) return lent
  // The requests may reach any worker.
  const more = await Promise.all(others.map((other) => borrowFrom(other, workspace, lent.key).catch(() => undefined)))
  const all = [lent, ...more].flatMap((it) => (it && 'end' in it ? [it] : []))
  return { key: lent.key, end: async () => void (await Promise.all(all.map((it) => it.end()))) }
}

async function borrowFrom({ socket }: ServiceNote, workspace: string, key?: string): Promise<Borrowed> {
  const path = `/session?${new URLSearchParams({ workspace, ...(key === undefined ? {} : { key }) }).toString()}`
  const client = new Client(ORIGIN, { socketPath: socket })
  const { body } = await client.request({ method: 'POST', path, headersTimeout: ANSWER_MS, bodyTimeout: 0 })
  // The answer is one short line. The connection then stays open, and the key is valid for as long.
  const [line] = (await once(body, 'data')) as [Buffer]
  const answered = JSON.parse(line.toString()) as { key: string } | { error: string }
  if ('key' in answered) return { key: answered.key, end: () => client.destroy() }
  await client.destroy()
  return answered
}

/** Has a code, so that it is shown in one line, without a hint to --debug. */
function failure(message: string): Error {
  return Object.assign(new Error(message), { code: 'ERR_SERVICE' })
}

/**
 * The first answer of the service or one of its workers, since one of them may be starting or stopping; undefined when
 * none answers.
 */
async function requestFromAny(dataDir: string, method: 'GET' | 'POST', path: string): Promise<unknown> {
  for (const { socket } of findServices(dataDir)) {
    const answered = await request(socket, method, path)
    if (answered !== undefined) return answered
  }
  return undefined
}

/** undefined when no process is listening. */
async function request(
  socketPath: string,
  method: 'GET' | 'POST',
  path: string,
  answerMs = ANSWER_MS,
): Promise<unknown> {
  const client = new Client(ORIGIN, { socketPath })
  try {
    const { body } = await client.request({ method, path, headersTimeout: answerMs, bodyTimeout: answerMs })
    return await body.json()
  } catch {
    return undefined
  } finally {
    await client.destroy()
  }
}

export function removeSocket(socket: string, dataDir: string): void {
  rmSync(socket, { force: true })
  if (dirname(socket) === dataDir) return
  try {
    rmdirSync(dirname(socket))
  } catch {
    // The file is gone already, or belongs to another service.
  }
}

function readNote(dataDir: string): ServiceNote | undefined {
  try {
    return JSON.parse(readFileSync(noteIn(dataDir), 'utf8')) as ServiceNote
  } catch {
    return undefined
  }
}
