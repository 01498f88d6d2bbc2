import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SettingsAnswer } from '../shared/settings.ts'
import type { Reloads } from '../cluster/changes/change-feed.ts'
import type { CacheUseEntry } from '../engines/cache-use.ts'
import type { ContradictedCounts } from '../engines/contradicted-counts.ts'
import type { MetricFamily } from './telemetry/metrics.ts'
import { removeSocket, type EngineListing, type RemovedModel, type ReplicaListing } from './running-service.ts'

/** The service's side of running-service.ts: a unix socket that only its own user can open. */

/** What a service does for commands. */
export interface ServiceCommands {
  readonly reloads: Reloads
  settings(): SettingsAnswer
  /** Resolves when the database has every row that is durable. */
  settled(): Promise<void>
  /** The engines whose counts contradict the text. */
  contradictedCounts(): readonly ContradictedCounts[]
  /** How much of its input was cached, by key and model. */
  cacheUse(): readonly CacheUseEntry[]
  /** The ledger was reconciled, and this many things do not match. */
  reconciled(problems: number): void
  /** Of this process. */
  metrics(): Promise<readonly MetricFamily[]>
  readonly replicas: {
    list(): Promise<ReplicaListing>
    /** Records it. Rejects if there is no such replica. */
    drain(name: string, actor: string): Promise<void>
  }
  readonly engines: {
    /** Those that start when they are needed. */
    list(): readonly EngineListing[]
    /** Records it. Rejects if there is no such engine, or it cannot do that. */
    order(lane: string, order: string, actor: string): Promise<void>
  }
  /** Removes a local model. Rejects while it is in use. The command records it. */
  removeModel(slug: string): Promise<RemovedModel>
  /** A link that signs in to a console, once: of a workspace, or of the operator. Rejects when there is no such workspace. */
  consoleLink(workspace: string | undefined): Promise<string>
  /** Lends a key to a command, until the command disconnects. Throws when there is no such workspace. */
  lendKey(workspace: string, key?: string): { readonly key: string; end(): void }
}

const SOCKET = 'weir.sock'

/** Listens for commands. Only for the service that holds the lock of the directory. */
export async function listenForCommands(
  dataDir: string,
  commands: ServiceCommands,
): Promise<{ readonly socket: string; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    request.resume()
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://weir')
    if (request.method === 'POST' && pathname === '/session') {
      return lend(commands, searchParams, response)
    }
    if (request.method === 'POST' && pathname === '/drain') {
      return drain(commands, searchParams, response)
    }
    if (request.method === 'POST' && pathname === '/engine-order') {
      return orderEngine(commands, searchParams, response)
    }
    if (request.method === 'POST' && pathname === '/remove-model') {
      return removeModel(commands, searchParams.get('model') ?? '', response)
    }
    if (request.method === 'POST' && pathname === '/reconciled') {
      commands.reconciled(Number(searchParams.get('problems')))
      return send(response, 200, {})
    }
    if (request.method === 'POST' && pathname === '/console-link') {
      return sendLink(commands, searchParams.get('workspace') ?? undefined, response)
    }
    void answer(`${request.method} ${request.url}`, commands).then(({ status, body }) => send(response, status, body))
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

async function answer(
  request: string,
  { reloads, settings, settled, contradictedCounts, cacheUse, metrics, replicas, engines }: ServiceCommands,
): Promise<{ status: number; body: object }> {
  try {
    switch (request) {
      case 'GET /settings':
        return { status: 200, body: settings() }
      case 'GET /metric-families':
        return { status: 200, body: { families: await metrics() } }
      case 'GET /replicas':
        return { status: 200, body: await replicas.list() }
      case 'GET /engines':
        return { status: 200, body: { engines: engines.list() } }
      case 'POST /accounts':
        return { status: 200, body: { reloaded: true, unreached: await reloads.accounts() } }
      case 'POST /settled':
        await settled()
        return { status: 200, body: { settled: true } }
      case 'GET /counts':
        return { status: 200, body: { counts: contradictedCounts() } }
      case 'GET /cache-use':
        return { status: 200, body: { entries: cacheUse() } }
      case 'POST /catalog':
      case 'POST /catalog?force=true': {
        const { needsRestart, ...taken } = await reloads.catalog({ force: request.includes('?') })
        return { status: 200, body: { reloaded: true, ...taken, needs_restart: needsRestart } }
      }
      default:
        return { status: 404, body: { error: `there is nothing at ${request}` } }
    }
  } catch (error) {
    return { status: 500, body: { error: (error as Error).message } }
  }
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(`${JSON.stringify(body)}\n`)
}

function lend(commands: ServiceCommands, query: URLSearchParams, response: ServerResponse): void {
  try {
    const { key, end } = commands.lendKey(query.get('workspace') ?? '', query.get('key') ?? undefined)
    response.once('close', end)
    response.writeHead(200, { 'Content-Type': 'application/json' }).write(`${JSON.stringify({ key })}\n`)
  } catch (error) {
    send(response, 400, { error: (error as Error).message })
  }
}

function removeModel(commands: ServiceCommands, slug: string, response: ServerResponse): void {
  commands.removeModel(slug).then(
    (removed) => send(response, 200, removed),
    ({ message }: Error) => send(response, 409, { error: message }),
  )
}

function sendLink({ consoleLink }: ServiceCommands, workspace: string | undefined, response: ServerResponse): void {
  consoleLink(workspace).then(
    (url) => send(response, 200, { url }),
    ({ message }: Error) => send(response, 400, { error: message }),
  )
}

function drain({ replicas }: ServiceCommands, query: URLSearchParams, response: ServerResponse): void {
  replicas.drain(query.get('name') ?? '', query.get('actor') ?? 'command').then(
    () => send(response, 200, { asked: true }),
    ({ message }: Error) => send(response, 400, { error: message }),
  )
}

function orderEngine({ engines }: ServiceCommands, query: URLSearchParams, response: ServerResponse): void {
  const [lane = '', order = '', actor = 'command'] = ['lane', 'order', 'actor'].map(
    (name) => query.get(name) ?? undefined,
  )
  engines.order(lane, order, actor).then(
    () => send(response, 200, { given: true }),
    ({ message }: Error) => send(response, 400, { error: message }),
  )
}

/**
 * In the data directory, if possible. A path of more than about 100 bytes is too long for a socket, and some file
 * systems have no sockets; then it gets a private directory of its own.
 */
async function listenInPrivate(server: Server, dataDir: string): Promise<string> {
  const usual = join(dataDir, SOCKET)
  // The holder of the lock owns the directory, so this socket belongs to a service that was killed.
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
