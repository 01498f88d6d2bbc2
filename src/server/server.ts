import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createSecureServer, type Server as SecureServer } from 'node:https'
import type { Socket } from 'node:net'
import type { SecureContextOptions } from 'node:tls'
import { byteBudget, type ByteBudget } from '../shared/byte-budget.ts'
import { ApiError, CallerLeft } from '../shared/errors.ts'
import type { RateView } from '../workspaces/rate-limits/rate-limit.ts'
import { CallerConnection, type ListenerHooks } from './caller-connection.ts'
import { Exchange, type ExchangeListener, type ResponseContext } from './exchange.ts'
import { openOwnPort, type OpenPort } from '../cluster/workers/port.ts'
import { MAX_HEADERS, refusalOfHead, newRequestId } from './incoming-request.ts'

/** What a listener serves. */
export interface Application {
  /** Replies before it returns, or throws an error that refuses the request. */
  answer(exchange: Exchange): Promise<void>
  /**
   * The rate limit of an address, for a reply that `answer` had no part in: the request was unreadable, late, or
   * arrived during a shutdown. undefined when the listener has no rate limit.
   */
  rateOf(address: string): Promise<RateView | undefined>
  /** The headers that every response carries, computed when they are sent. */
  headers(context: ResponseContext): Record<string, string>
  /** The body of an error, if it differs from the usual one. */
  errorBody?(exchange: Exchange, error: ApiError): object
  /** The exchange has ended. `failure` is an unexpected error, to be logged. */
  over(exchange: Exchange, failure: unknown): void
}

export interface Listener {
  readonly scheme: 'http' | 'https'
  readonly address: { readonly host: string; readonly port: number }
  /** The requests received since the start. */
  requestCount(): number
  /** New connections use the new certificate, if the listener has one at all. */
  renew(tls: SecureContextOptions): void
  /** Accepts no new connections, and closes each open one after its next response. */
  drain(): void
  /** Resolves when every exchange has ended. Those still running after `ms` are cut off. */
  close(ms: number): Promise<void>
}

export function urlOf({ scheme, address: { host, port } }: Pick<Listener, 'scheme' | 'address'>): string {
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`
}

const CLOSE_HEADER = { Connection: 'close' }
/** The last bytes of an answer always have at least this long to be sent. */
const LAST_BYTES_MS = 1000
/** How long the head of a request may take to arrive. */
const HEAD_MS = 30_000
/** How long an idle connection stays open. Node announces it in the Keep-Alive header. */
const KEEP_ALIVE_MS = 75_000
const MAX_HEAD_BYTES = 16_384
/** How long a connection made just before a shutdown has for its first request, which may be on its way. */
const FIRST_REQUEST_MS = 500

export interface ListenOptions {
  /** How long a request may take to arrive. Once it has been read, it may take as long as it needs. */
  readonly requestMs: number
  /** How often Node checks for timeouts. */
  readonly checkMs: number
  /** How long a caller may read nothing of its answer. */
  readonly stallMs: number
  /** What all requests together may hold in memory. */
  readonly memory: ByteBudget
  /** Workers of one machine share a port. */
  readonly openPort: OpenPort
  /** A certificate and its key: serve HTTPS. */
  readonly tls: SecureContextOptions | undefined
}

/** A request may take as long as an upload of 25 MiB at 1 Mbit/s, which takes 210 s. */
const usual = { requestMs: 300_000, checkMs: 5000, stallMs: 60_000, openPort: openOwnPort, tls: undefined }

export async function listen(
  application: Application,
  host: string,
  port: number,
  options: Partial<ListenOptions> = {},
): Promise<Listener> {
  const settings = { ...usual, memory: byteBudget(Infinity), ...options }
  const { stallMs, memory, openPort, tls } = settings
  const connections = new Map<Socket, CallerConnection>()
  /** With TLS, all accepted sockets, including those still in the handshake. */
  const accepted = new Set<Socket>()
  const unusedOver = Promise.withResolvers<void>()
  let requestCount = 0
  let live = 0
  let idle: (() => void) | undefined
  let noneLeft: (() => void) | undefined

  const exchangeListener: ExchangeListener = {
    memory,
    stallMs,
    commonHeaders(exchange) {
      const headers = application.headers(exchange)
      return owner.isDraining ? { ...headers, ...CLOSE_HEADER } : headers
    },
  }

  const owner: ListenerHooks & { isDraining: boolean } = {
    isDraining: false,
    open(request, response, connection) {
      requestCount++
      live++
      return new Exchange(request, response, connection, exchangeListener)
    },
    serve: (exchange) => void serve(exchange),
    refuse: (error, connection) => void refuse(error, connection),
    closed(connection) {
      connections.delete(connection.socket)
      if (connections.size === 0) noneLeft?.()
    },
  }

  async function serve(exchange: Exchange): Promise<void> {
    let failure: unknown
    try {
      const refusal = refusalOfHead(exchange.request)
      // A client or proxy that sent this may disagree about where the next request begins. With Upgrade, Node itself
      // does: it drops what arrived in the same read.
      if (refusal || exchange.request.headers['upgrade'] !== undefined) exchange.headers['Connection'] = 'close'
      if (refusal) throw refusal
      if (owner.isDraining) throw new ApiError('service_unavailable', 'The service is shutting down. Try again.')
      await application.answer(exchange)
    } catch (error) {
      if (!(error instanceof CallerLeft || exchange.isGone)) failure = await replyWithError(exchange, error)
    }
    exchange.release()
    // No status was ever sent: the caller had disconnected.
    exchange.status ||= 499
    application.over(exchange, failure)
    live--
    if (live === 0) idle?.()
  }

  /** Failing to compute rate limit headers must not keep an error from being sent. */
  const rateOf = (address: string): Promise<RateView | undefined> => application.rateOf(address).catch(() => undefined)

  /** Returns the failure to log, if there is one. */
  async function replyWithError(exchange: Exchange, error: unknown, headers = {}): Promise<unknown> {
    const known = error instanceof ApiError
    const reply = known ? error : new ApiError('internal_error', 'Something went wrong on our side. Try again.')
    exchange.rate ??= await rateOf(exchange.address)
    if (!exchange.hasReplied) exchange.sendError(reply, headers, application.errorBody?.(exchange, reply))
    else if (!exchange.isOver) exchange.cut()
    return known ? error.cause : error
  }

  /** Answers a request that could not be read, and closes its connection. */
  async function refuse(refusal: ApiError, connection: CallerConnection): Promise<void> {
    const { exchange } = connection
    if (exchange && !exchange.hasReplied) {
      await replyWithError(exchange, refusal, CLOSE_HEADER)
      // Rejects a read of the body that is still waiting.
      exchange.request.cut()
      return connection.close()
    }
    // A second answer would be taken for the answer to the next request, or for a part of the one that is being sent.
    if (exchange) return exchange.isOver ? connection.close() : connection.cut()
    const rate = await rateOf(connection.address)
    connection.close(rawReply(refusal, application.headers({ rate, caller: undefined })))
  }

  const server = nodeServer(settings)
  const receive = (message: IncomingMessage, response: ServerResponse): void =>
    connections.get(message.socket)?.receive(message, response)
  server
    .on(tls ? 'secureConnection' : 'connection', (socket: Socket) => {
      connections.set(socket, new CallerConnection(socket, owner))
    })
    .on('request', receive)
    // Unknown expectations are ignored.
    .on('checkExpectation', receive)
    .on('clientError', (error, socket) => connections.get(socket as Socket)?.fail(error))
  const opened = await openPort(
    (socket) => {
      if (tls) accepted.add(socket.once('close', () => accepted.delete(socket)))
      server.emit('connection', socket)
    },
    host,
    port,
  )
  // Other sockets do the listening, so Node does not know that this server serves. This starts its timeout checks.
  server.emit('listening')

  /** While draining, a connection closes after its next response. */
  function drain(): void {
    if (owner.isDraining) return
    owner.isDraining = true
    opened.close()
    for (const connection of connections.values())
      if (connection.isQuiet && !connection.isUnused) connection.closeSoon()
    setTimeout(() => {
      for (const connection of connections.values()) if (connection.isUnused) connection.closeSoon()
      unusedOver.resolve()
    }, FIRST_REQUEST_MS).unref()
  }

  return {
    scheme: tls ? 'https' : 'http',
    address: { host, port: opened.port },
    requestCount: () => requestCount,
    renew(renewed) {
      if (tls) (server as SecureServer).setSecureContext(renewed)
    },
    drain,
    async close(ms) {
      const until = performance.now() + ms
      drain()
      if ([...connections.values()].some(({ isUnused }) => isUnused)) await unusedOver.promise
      if (live > 0) {
        const cut = setTimeout(() => {
          for (const { exchange } of connections.values()) if (exchange) exchange.isCut = true
          cutAll(connections.values())
        }, ms)
        await new Promise<void>((resolve) => (idle = resolve))
        clearTimeout(cut)
      }
      for (const connection of connections.values()) if (!connection.exchange) connection.closeSoon()
      if (connections.size > 0) {
        const closed = new Promise<void>((resolve) => (noneLeft = resolve))
        // Callers who do not read the last bytes are cut off.
        const cut = setTimeout(() => cutAll(connections.values()), Math.max(LAST_BYTES_MS, until - performance.now()))
        await closed
        clearTimeout(cut)
      }
      for (const socket of accepted) socket.destroy()
      server.close()
    },
  }
}

function nodeServer({ requestMs, checkMs, tls }: Pick<ListenOptions, 'requestMs' | 'checkMs' | 'tls'>): Server {
  const options = {
    headersTimeout: Math.min(HEAD_MS, requestMs),
    requestTimeout: requestMs,
    connectionsCheckingInterval: checkMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: MAX_HEAD_BYTES,
    // `refusalOfHead` covers what Node would refuse without our headers and error format, or ignore.
    requireHostHeader: false,
  }
  const server = tls
    ? createSecureServer({ ...options, ...tls, handshakeTimeout: options.headersTimeout })
    : createServer(options)
  server.maxHeadersCount = MAX_HEADERS + 1
  return server
}

function cutAll(connections: Iterable<CallerConnection>): void {
  for (const connection of connections) connection.cut()
}

function rawReply(error: ApiError, headers: Record<string, string>): string {
  const body = JSON.stringify(error.body())
  const all: Record<string, string> = {
    ...headers,
    'X-Request-Id': newRequestId(),
    'Content-Type': 'application/json',
    'Content-Length': String(Buffer.byteLength(body)),
    Connection: 'close',
    ...error.retryHeaders(),
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${error.status} ${error.code}\r\n${lines.join('')}\r\n${body}`
}
