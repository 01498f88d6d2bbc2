import { once } from 'node:events'
import { chmodSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'undici'
import type { Setting } from './core/settings.ts'
import type { Reloads } from './ports/changes.ts'
import type { ContradictedCounts } from './ports/contradicted-counts.ts'
import { isServiceRunning } from './store/sqlite/service-lock.ts'

/**
 * How commands reach the service that runs on the same data directory. The service listens on a unix socket, which
 * only its own user can open, and leaves a note that says where. A command that changed something asks the service to
 * look again before it ends, so a key that was revoked is refused from the moment `weir keys revoke` returns.
 */
export interface ServiceNote {
  readonly url: string
  readonly adminUrl: string
  readonly socket: string
  readonly pid: number
}

/** What a service does for commands. */
export interface ServiceCommands {
  readonly reloads: Reloads
  /** The settings in force. */
  settings(): readonly Setting[]
  /** Resolves when the database has every row that is durable. */
  settled(): Promise<void>
  /** The engines whose counts contradict the text. */
  contradictedCounts(): readonly ContradictedCounts[]
  /** Lends a key to a command, until the command has gone. Throws when there is no such workspace. */
  lendKey(workspace: string): { readonly key: string; end(): void }
}

/** The answer to a command. */
export type ReloadAnswer =
  | { readonly reloaded: true; readonly models?: number; readonly unreached?: readonly string[] }
  | { readonly error: string }

const SOCKET = 'weir.sock'
/** A service that starts or stops is given this long to answer, or to be gone. */
const PATIENCE_MS = 30_000
const LOOK_MS = 100
const ANSWER_MS = 20_000

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

/** The note of the service that runs on a data directory. A service that was killed leaves a note, but no lock. */
export function findService(dataDir: string): ServiceNote | undefined {
  return isServiceRunning(dataDir) ? readNote(dataDir) : undefined
}

/** Listens for commands. Only for the service that holds the lock of the directory. */
export async function listenForCommands(
  dataDir: string,
  commands: ServiceCommands,
): Promise<{ readonly socket: string; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    request.resume()
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://weir')
    if (request.method === 'POST' && pathname === '/session') {
      return lend(commands, searchParams.get('workspace') ?? '', response)
    }
    void answer(`${request.method} ${request.url}`, commands).then(({ status, body }) =>
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body)),
    )
  })
  const socket = await listenInPrivate(server, dataDir)
  return {
    socket,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
      removeSocket(socket, dataDir)
    },
  }
}

/**
 * Asks the service to reload. Resolves with its answer when it has done so, and with undefined when no service is
 * running. A service that is just starting may have read the old state, so it is waited for.
 */
export async function askService(
  dataDir: string,
  reload: 'accounts' | 'catalog',
  { force } = { force: false },
): Promise<ReloadAnswer | undefined> {
  return (await askAgain(dataDir, `/${reload}${force ? '?force=true' : ''}`)) as ReloadAnswer | undefined
}

/** Asks until the service answers, or is gone: then undefined. */
async function askAgain(dataDir: string, path: string): Promise<unknown> {
  const until = performance.now() + PATIENCE_MS
  while (isServiceRunning(dataDir)) {
    const socket = readNote(dataDir)?.socket
    const answered = socket === undefined ? undefined : await ask(socket, 'POST', path)
    if (answered) return answered
    if (performance.now() > until) throw failure('the running service does not answer; restart it')
    await sleep(LOOK_MS)
  }
  return undefined
}

/**
 * Resolves when a running service and its replicas have seen the change, or when none is running. Returns the replicas
 * that did not answer.
 */
export async function refreshService(dataDir: string): Promise<readonly string[]> {
  const answered = await askService(dataDir, 'accounts')
  if (answered && 'error' in answered) {
    throw failure(`the running service did not take the change (${answered.error}); restart it`)
  }
  return answered?.unreached ?? []
}

/** Has a running service bring every durable row into the database. False when none is running. */
export async function settleRunningService(dataDir: string): Promise<boolean> {
  const answered = (await askAgain(dataDir, '/settled')) as { readonly error?: string } | undefined
  if (answered?.error !== undefined) {
    throw failure(`the running service cannot bring its rows into the database (${answered.error}); see its log`)
  }
  return answered !== undefined
}

/** The engines of the running service whose counts contradict the text. Empty when no service is running. */
export async function contradictedCountsOf(dataDir: string): Promise<readonly ContradictedCounts[]> {
  const socket = findService(dataDir)?.socket
  const answered = socket === undefined ? undefined : await ask(socket, 'GET', '/counts')
  return (answered as Partial<CountsAnswer> | undefined)?.counts ?? []
}

interface CountsAnswer {
  readonly counts: readonly ContradictedCounts[]
}

/** The settings that the running service goes by; undefined when none is running. */
export async function settingsInForce(dataDir: string): Promise<readonly Setting[] | undefined> {
  const socket = findService(dataDir)?.socket
  const answered = socket === undefined ? undefined : await ask(socket, 'GET', '/settings')
  return (answered as { settings?: readonly Setting[] } | undefined)?.settings
}

/** A key of the running service that ends with this process, however it ends. Nothing of it is stored. */
export async function borrowKey(
  { socket }: ServiceNote,
  workspace: string,
): Promise<{ readonly key: string; end(): Promise<void> } | { readonly error: string }> {
  const client = new Client('http://weir', { connect: { socketPath: socket }, bodyTimeout: 0 })
  const { body } = await client.request({
    method: 'POST',
    path: `/session?workspace=${encodeURIComponent(workspace)}`,
  })
  const end = (): Promise<void> => client.destroy()
  body.on('error', () => {})
  // The answer is one short line. The connection then stays open, and the key lives as long as it does.
  const [line] = (await once(body, 'data')) as [Buffer]
  const answered = JSON.parse(line.toString()) as { key: string } | { error: string }
  if ('key' in answered) return { key: answered.key, end }
  await end()
  return answered
}

function lend(commands: ServiceCommands, workspace: string, response: ServerResponse): void {
  try {
    const { key, end } = commands.lendKey(workspace)
    response.once('close', end)
    response.writeHead(200, { 'Content-Type': 'application/json' }).write(`${JSON.stringify({ key })}\n`)
  } catch (error) {
    response.writeHead(400, { 'Content-Type': 'application/json' })
    response.end(`${JSON.stringify({ error: (error as Error).message })}\n`)
  }
}

/** It has a code, so that it is shown in one line, without a hint to --debug. */
function failure(message: string): Error {
  return Object.assign(new Error(message), { code: 'ERR_SERVICE' })
}

async function answer(
  request: string,
  { reloads, settings, settled, contradictedCounts }: ServiceCommands,
): Promise<{ status: number; body: object }> {
  try {
    switch (request) {
      case 'GET /settings':
        return { status: 200, body: { settings: settings() } }
      case 'POST /accounts':
        return { status: 200, body: { reloaded: true, unreached: await reloads.accounts() } }
      case 'POST /settled':
        await settled()
        return { status: 200, body: { settled: true } }
      case 'GET /counts':
        return { status: 200, body: { counts: contradictedCounts() } }
      case 'POST /catalog':
      case 'POST /catalog?force=true':
        return {
          status: 200,
          body: { reloaded: true, models: await reloads.catalog({ force: request.includes('?') }) },
        }
      default:
        return { status: 404, body: { error: `there is nothing at ${request}` } }
    }
  } catch (error) {
    return { status: 500, body: { error: (error as Error).message } }
  }
}

/** undefined when nobody is listening. */
async function ask(socket: string, method: 'GET' | 'POST', path: string): Promise<unknown> {
  const client = new Client('http://weir', { connect: { socketPath: socket }, headersTimeout: ANSWER_MS })
  try {
    const { body } = await client.request({ method, path })
    return await body.json()
  } catch {
    return undefined
  } finally {
    await client.destroy()
  }
}

/**
 * In the data directory, if possible. A path of more than about 100 bytes is too long for a socket, and some file
 * systems have no sockets; then it gets a private directory of its own.
 */
async function listenInPrivate(server: Server, dataDir: string): Promise<string> {
  const usual = join(dataDir, SOCKET)
  // Whoever has the lock owns the directory, so this is the socket of a service that was killed.
  rmSync(usual, { force: true })
  try {
    return await listenAt(server, usual)
  } catch {
    return listenAt(server, join(mkdtempSync(join(tmpdir(), 'weir-')), SOCKET))
  }
}

async function listenAt(server: Server, path: string): Promise<string> {
  server.listen(path)
  await once(server, 'listening')
  chmodSync(path, 0o600)
  return path
}

function removeSocket(socket: string, dataDir: string): void {
  rmSync(socket, { force: true })
  if (dirname(socket) === dataDir) return
  try {
    rmdirSync(dirname(socket))
  } catch {
    // It is gone already, or somebody else's.
  }
}

function readNote(dataDir: string): ServiceNote | undefined {
  try {
    return JSON.parse(readFileSync(noteIn(dataDir), 'utf8')) as ServiceNote
  } catch {
    return undefined
  }
}
