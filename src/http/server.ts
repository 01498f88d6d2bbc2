import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { byteBudget, type ByteBudget } from '../core/byte-budget.ts'
import { ApiError, CallerLeft } from '../core/errors.ts'
import type { RateView } from '../ports/rate-limit.ts'
import { Exchange, type ExchangeListener, type ResponseContext } from './exchange.ts'
import { noticeVanished, openOwnPort, type OpenPort } from './port.ts'
import { newRequestId } from './request-id.ts'

/** What a listener serves. */
export interface Application {
  /** Replies before it returns, or throws its refusal. */
  answer(exchange: Exchange): Promise<void> | void
  /**
   * The allowance of an address, for a reply that `answer` had no part in: the request was unreadable, late, or
   * came during a shutdown. undefined when the listener has no rate limit.
   */
  look(address: string): Promise<RateView | undefined>
  /** The headers that every response carries, computed when they are sent. */
  headers(context: ResponseContext): Record<string, string>
  /** The body of an error, if it differs from the usual one. */
  errorBody?(exchange: Exchange, error: ApiError): object
  /** The exchange has ended. `failure` is an unexpected error, to be logged. */
  over(exchange: Exchange, failure: unknown): void
}

export interface Listener {
  readonly address: { readonly host: string; readonly port: number }
  /** Accepts no new connections, and closes each open one after its next response. */
  drain(): void
  /** Resolves when every exchange has ended. Those still running after `ms` are cut off. */
  close(ms: number): Promise<void>
}

const CLOSE_HEADER = { Connection: 'close' }
/** The last bytes of an answer always get at least this long to leave. */
const LAST_BYTES_MS = 1000
const DISCARD_MS = 10_000
/** How long a connection that was made just before a shutdown has for its first request, which may be on its way. */
const FIRST_REQUEST_MS = 500

export interface ListenOptions {
  /** How long a request may take to arrive. Once it has been read, it may take as long as it needs. */
  readonly requestMs: number
  /** How often Node checks. */
  readonly lookMs: number
  /** How long a caller may take nothing of its answer. */
  readonly stallMs: number
  /** What all requests together may hold in memory. */
  readonly memory: ByteBudget
  /** Workers of one machine share a port. */
  readonly openPort: OpenPort
}

/** A request may take as long as an upload of 25 MiB at 1 Mbit/s, which takes 210 s. */
const usual = { requestMs: 300_000, lookMs: 5000, stallMs: 60_000, openPort: openOwnPort }

export async function listen(
  application: Application,
  host: string,
  port: number,
  options: Partial<ListenOptions> = {},
): Promise<Listener> {
  const { requestMs, lookMs, stallMs, memory, openPort } = { ...usual, memory: byteBudget(Infinity), ...options }
  /** Arrays, because nearly all have one exchange, and a Set takes three times the memory for that. */
  const exchanges = new Map<Socket, Exchange[]>()
  /** The bytes read on a connection when its last exchange ended. If there are more now, another request has begun. */
  const readUpTo = new WeakMap<Socket, number>()
  /** Connections that are being closed with an error. */
  const refused = new WeakSet<Socket>()
  let draining = false
  const unusedOver = Promise.withResolvers<void>()
  let live = 0
  let idle: (() => void) | undefined

  const server = createServer({
    ...noticeVanished,
    headersTimeout: Math.min(20_000, requestMs),
    requestTimeout: requestMs,
    connectionsCheckingInterval: lookMs,
    keepAliveTimeout: 75_000,
    maxHeaderSize: 16_384,
    // Node would refuse a request without Host itself, without our headers and error format.
    requireHostHeader: false,
  })

  const listener: ExchangeListener = {
    memory,
    stallMs,
    commonHeaders(exchange) {
      const headers = application.headers(exchange)
      return draining ? { ...headers, ...CLOSE_HEADER } : headers
    },
    exchangeOver: ({ request: { socket } }) => void readUpTo.set(socket, socket.bytesRead),
    exchangeSent: forget,
  }

  function receive(request: IncomingMessage, response: ServerResponse): void {
    const exchange = new Exchange(request, response, listener)
    exchanges.get(request.socket)?.push(exchange)
    live++
    void serve(exchange)
  }
  server.on('request', receive)
  // Unknown expectations are ignored. Node would answer 417 itself, without our headers and error format.
  server.on('checkExpectation', receive)

  async function serve(exchange: Exchange): Promise<void> {
    let failure: unknown
    try {
      if (draining) throw new ApiError('service_unavailable', 'The service is shutting down. Try again.')
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

  /** Missing rate limit headers must not keep an error from being sent. */
  const look = (address: string): Promise<RateView | undefined> => application.look(address).catch(() => undefined)

  /** Returns the failure to log, if there is one. */
  async function replyWithError(exchange: Exchange, error: unknown): Promise<unknown> {
    const known = error instanceof ApiError
    const reply = known ? error : new ApiError('internal_error', 'Something went wrong on our side. Try again.')
    exchange.rate ??= await look(exchange.address)
    // Once closed, the connection would lose the reply to a caller that is still sending.
    if (reply.code === 'request_too_large' && exchange.closesAfterReply) await discardRest(exchange.request)
    if (!exchange.hasReplied) {
      const headers = reply.code === 'request_timeout' ? CLOSE_HEADER : {}
      exchange.sendError(reply, headers, application.errorBody?.(exchange, reply))
    } else if (!exchange.isOver) exchange.request.socket.destroy()
    return known ? error.cause : error
  }

  // Only the socket's 'close' event reaches pipelined requests, too.
  server.on('connection', (socket: Socket) => {
    exchanges.set(socket, [])
    socket.once('close', () => {
      const left = exchanges.get(socket)
      exchanges.delete(socket)
      for (const exchange of left ?? []) exchange.leave()
    })
  })

  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy()
      return
    }
    // The parser reports the same error again for every further chunk.
    if (refused.has(socket)) return
    refused.add(socket)
    void refuse(refusalOf(error), socket)
  })

  /** Answers a request that could not be read, and closes its connection. */
  async function refuse(refusal: ApiError, socket: Socket): Promise<void> {
    const unanswered = exchanges.get(socket)?.find((exchange) => !exchange.hasReplied)
    if (unanswered && refusal.code === 'request_timeout') {
      // This tells whoever still waits for the body. Node does not touch a request that has been answered.
      socket.once('close', () => unanswered.request.destroy())
      await replyWithError(unanswered, refusal)
      socket.end()
      return
    }
    const rate = await look(socket.remoteAddress ?? '')
    socket.end(rawReply(refusal, application.headers({ rate, caller: undefined })))
  }

  const opened = await openPort(server, host, port)

  function drain(): void {
    if (draining) return
    draining = true
    opened.close()
    for (const [socket, { length }] of exchanges) {
      if (length === 0 && isQuiet(socket) && !isUnused(socket)) socket.destroySoon()
    }
    setTimeout(() => {
      for (const socket of exchanges.keys()) if (isUnused(socket)) socket.destroySoon()
      unusedOver.resolve()
    }, FIRST_REQUEST_MS).unref()
  }

  /** Nothing of another request has been read. */
  function isQuiet(socket: Socket): boolean {
    return socket.bytesRead === (readUpTo.get(socket) ?? 0)
  }

  function isUnused(socket: Socket): boolean {
    return socket.bytesRead === 0
  }

  /** While draining, the connection closes after its last response. */
  function forget(exchange: Exchange): void {
    const { socket } = exchange.request
    const ofSocket = exchanges.get(socket)
    const place = ofSocket?.indexOf(exchange) ?? -1
    if (place >= 0) ofSocket?.splice(place, 1)
    if (draining && ofSocket?.length === 0) socket.destroySoon()
  }

  return {
    address: { host, port: opened.port },
    drain,
    async close(ms) {
      const until = performance.now() + ms
      drain()
      if ([...exchanges.keys()].some(isUnused)) await unusedOver.promise
      if (live > 0) {
        const cut = setTimeout(() => {
          for (const ofSocket of exchanges.values()) for (const exchange of ofSocket) exchange.isCut = true
          destroyAll(exchanges)
        }, ms)
        await new Promise<void>((resolve) => (idle = resolve))
        clearTimeout(cut)
      }
      await closed(exchanges, Math.max(LAST_BYTES_MS, until - performance.now()))
      // No connection is left. This only stops Node's timer that checks connections.
      server.close()
    },
  }
}

function destroyAll(exchanges: ReadonlyMap<Socket, unknown>): void {
  for (const socket of exchanges.keys()) socket.destroy()
}

/** Lets the last bytes leave, then cuts off callers who do not read them. */
async function closed(exchanges: ReadonlyMap<Socket, readonly unknown[]>, ms: number): Promise<void> {
  for (const [socket, { length }] of exchanges) if (length === 0) socket.destroySoon()
  const cut = setTimeout(() => destroyAll(exchanges), ms)
  await Promise.all([...exchanges.keys()].map((socket) => new Promise((resolve) => socket.once('close', resolve))))
  clearTimeout(cut)
}

/** The error for a request that could not be read. */
function refusalOf(error: NodeJS.ErrnoException): ApiError {
  switch (error.code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new ApiError('request_timeout', 'The request took too long to arrive.')
    case 'HPE_HEADER_OVERFLOW':
      return new ApiError('request_too_large', 'The request headers are too large.')
    default:
      return new ApiError('invalid_value', 'The request is not valid HTTP/1.1.')
  }
}

function rawReply(error: ApiError, headers: Record<string, string>): string {
  const body = JSON.stringify(error.body())
  const all: Record<string, string> = {
    ...headers,
    'X-Request-Id': newRequestId(),
    'Content-Type': 'application/json',
    'Content-Length': String(Buffer.byteLength(body)),
    Connection: 'close',
    ...(error.retryAfter === null ? {} : { 'Retry-After': String(error.retryAfter) }),
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${error.status} ${error.code}\r\n${lines.join('')}\r\n${body}`
}

/** Reads what is left of a body. A caller that is slow to send it is not waited for. */
async function discardRest(request: IncomingMessage): Promise<void> {
  if (request.complete || request.destroyed) return
  const over = Promise.withResolvers<void>()
  const timer = setTimeout(over.resolve, DISCARD_MS)
  request.once('end', over.resolve).once('close', over.resolve).resume()
  await over.promise
  clearTimeout(timer)
}
