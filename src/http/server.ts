import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { Server as NetServer, type AddressInfo, type Socket } from 'node:net'
import { ApiError, CallerLeft } from '../core/errors.ts'
import { Exchange, newRequestId } from './exchange.ts'

/** What a listener serves. */
export interface Application {
  /** Throws what it refuses; `answer` must have replied when it returns. */
  answer(exchange: Exchange): Promise<void>
  /** Headers for every response; the exchange is missing where the request could not even be read. */
  headers(exchange: Exchange | undefined, address: string): Record<string, string>
  /** The body of an error, where it differs from the usual. */
  errorBody?(exchange: Exchange, error: ApiError): object
  /** An exchange is over; `failure` is what nobody expected. */
  over(exchange: Exchange, failure: unknown): void
}

export interface Listener {
  readonly address: { readonly host: string; readonly port: number }
  /** Takes no new connections and closes each one with its next response. */
  drain(): void
  /** Resolves when every exchange is over; those left after `ms` are cut off. */
  close(ms: number): Promise<void>
}

const CLOSE_HEADER = { Connection: 'close' }
/** At the least, for the end of the last answers. */
const LAST_BYTES_MS = 1000

/** Time to send a request, and how often it is looked at. A request that has been read is held as long as it takes. */
export interface Patience {
  readonly requestMs: number
  readonly lookMs: number
}

/** An upload of 25 MiB takes 210 s at 1 Mbit/s. */
const usualPatience: Patience = { requestMs: 300_000, lookMs: 5000 }

export async function listen(
  application: Application,
  host: string,
  port: number,
  patience: Patience = usualPatience,
): Promise<Listener> {
  const exchanges = new Map<Socket, Set<Exchange>>()
  /** What had come on a connection when its last exchange was over: more means that another one has begun. */
  const readUpTo = new WeakMap<Socket, number>()
  let draining = false
  let live = 0
  let idle: (() => void) | undefined

  const server = createServer({
    // A peer that vanished without a word is found by TCP itself, within about 15 s.
    keepAlive: true,
    keepAliveInitialDelay: 5000,
    headersTimeout: Math.min(20_000, patience.requestMs),
    requestTimeout: patience.requestMs,
    connectionsCheckingInterval: patience.lookMs,
    keepAliveTimeout: 75_000,
    maxHeaderSize: 16_384,
    // Node would refuse one without it in its own words, without our headers.
    requireHostHeader: false,
  })

  function receive(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request
    const exchange = new Exchange(request, response, {
      commonHeaders(it) {
        const headers = application.headers(it, socket.remoteAddress ?? '')
        return draining ? { ...headers, ...CLOSE_HEADER } : headers
      },
      exchangeOver(it) {
        readUpTo.set(socket, socket.bytesRead)
        // A stream is over when its response has closed, anything else before.
        if (draining && !response.closed) response.once('close', () => forget(it, socket))
        else if (draining) forget(it, socket)
        else exchanges.get(socket)?.delete(it)
      },
    })
    exchanges.get(socket)?.add(exchange)
    live++
    void serve(exchange)
  }
  server.on('request', receive)
  // An expectation we do not know is none of our business; Node would answer 417 in its own words.
  server.on('checkExpectation', receive)

  async function serve(exchange: Exchange): Promise<void> {
    let failure: unknown
    try {
      if (draining) throw new ApiError('service_unavailable', 'The service is shutting down. Try again.')
      await application.answer(exchange)
    } catch (error) {
      if (!(error instanceof CallerLeft || exchange.isGone)) failure = replyWithError(exchange, error)
    }
    // Whatever came of it, nobody was there to be told.
    exchange.status ||= 499
    application.over(exchange, failure)
    live--
    if (live === 0) idle?.()
  }

  function replyWithError(exchange: Exchange, error: unknown): unknown {
    const known = error instanceof ApiError
    const reply = known ? error : new ApiError('internal_error', 'Something went wrong on our side. Try again.')
    if (!exchange.hasReplied) {
      const headers = reply.code === 'request_timeout' ? CLOSE_HEADER : {}
      exchange.sendError(
        reply,
        headers,
        application.errorBody && ((it) => application.errorBody?.(exchange, it) ?? it.body()),
      )
    } else if (!exchange.isOver) exchange.request.socket.destroy()
    return known ? error.cause : error
  }

  // 'close' of the socket is the one event that pipelined requests hear of, too.
  server.on('connection', (socket: Socket) => {
    exchanges.set(socket, new Set())
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
    const refusal = refusalOf(error)
    const unanswered = [...(exchanges.get(socket) ?? [])].find((exchange) => !exchange.hasReplied)
    if (unanswered && refusal.code === 'request_timeout') {
      replyWithError(unanswered, refusal)
      // Whoever still waits for the body hears of it by this; Node leaves an answered request as it is.
      socket.once('close', () => unanswered.request.destroy())
      socket.end()
      return
    }
    socket.end(rawReply(refusal, application.headers(undefined, socket.remoteAddress ?? '')))
  })

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })

  function drain(): void {
    if (draining) return
    draining = true
    // Not as an HTTP server closes: that cuts off whoever has not read the end of an answer yet.
    NetServer.prototype.close.call(server)
    for (const [socket, { size }] of exchanges) {
      if (size === 0 && socket.bytesRead === (readUpTo.get(socket) ?? 0)) socket.destroySoon()
    }
  }

  /** While draining: the response has left, and the connection goes with the last one. */
  function forget(exchange: Exchange, socket: Socket): void {
    exchanges.get(socket)?.delete(exchange)
    if (exchanges.get(socket)?.size === 0) socket.destroySoon()
  }

  return {
    address: { host, port: (server.address() as AddressInfo).port },
    drain,
    async close(ms) {
      const until = performance.now() + ms
      drain()
      if (live > 0) {
        const cut = setTimeout(() => {
          for (const ofSocket of exchanges.values()) for (const exchange of ofSocket) exchange.isCut = true
          destroyAll(exchanges)
        }, ms)
        await new Promise<void>((resolve) => (idle = resolve))
        clearTimeout(cut)
      }
      await closed(server, exchanges, Math.max(LAST_BYTES_MS, until - performance.now()))
    },
  }
}

function destroyAll(exchanges: ReadonlyMap<Socket, unknown>): void {
  for (const socket of exchanges.keys()) socket.destroy()
}

/** Lets the last bytes leave, then cuts off whoever does not take them. */
async function closed(server: Server, exchanges: ReadonlyMap<Socket, Set<unknown>>, ms: number): Promise<void> {
  for (const [socket, { size }] of exchanges) if (size === 0) socket.destroySoon()
  const cut = setTimeout(() => destroyAll(exchanges), ms)
  await new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()))
  clearTimeout(cut)
  // Nobody is left to be cut off; this ends Node's own look at the connections.
  server.close()
}

/** What a request that could not be read gets. */
function refusalOf(error: NodeJS.ErrnoException): ApiError {
  switch (error.code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new ApiError('request_timeout', 'The request took too long to arrive.')
    case 'HPE_HEADER_OVERFLOW':
      return new ApiError('request_too_large', 'The headers of the request are too large.')
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
