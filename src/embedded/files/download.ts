import { createWriteStream } from 'node:fs'
import { rm, stat } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { setTimeout } from 'node:timers/promises'
import { EnvHttpProxyAgent, interceptors, request } from 'undici'

export interface Download {
  url: string
  headers?: Record<string, string>
  /** Grows as bytes arrive and is what a later attempt goes on from. */
  partPath: string
  onBytes: (received: number, total: number | undefined) => void
  signal?: AbortSignal | undefined
}

const attemptsMax = 5
const connectTimeoutMs = 10_000
/** No byte for so long is a dead connection. */
const stallMs = 60_000

/** Proxies are taken from the environment. */
export const dispatcher = new EnvHttpProxyAgent({
  connect: { timeout: connectTimeoutMs },
  headersTimeout: stallMs,
  bodyTimeout: stallMs,
})
/** undici drops credentials when a redirect leaves the origin. */
const followingDispatcher = dispatcher.compose(interceptors.redirect({ maxRedirections: 10 }))

export class HttpStatusError extends Error {
  readonly status: number
  constructor(status: number, url: string) {
    super(`${new URL(url).host} answered ${status}`)
    this.status = status
  }
}

/** Fetches into `partPath`, going on where an earlier attempt, of this process or another, stopped. */
export async function download(options: Download): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const before = await sizeOf(options.partPath)
    try {
      await fetchRest(options, before)
      return
    } catch (error) {
      options.signal?.throwIfAborted()
      if (error instanceof HttpStatusError && error.status < 500 && error.status !== 429) throw error
      // Attempts count only while nothing moves: a large file over a bad line is many cuts, each a step further.
      if ((await sizeOf(options.partPath)) > before) attempt = 0
      if (attempt >= attemptsMax || isUnreachable(error)) throw error
      await setTimeout(250 * 2 ** attempt, undefined, options.signal ? { signal: options.signal } : {})
    }
  }
}

async function fetchRest({ url, headers, partPath, onBytes, signal }: Download, have: number): Promise<void> {
  const {
    statusCode,
    headers: answer,
    body,
  } = await request(url, {
    dispatcher: followingDispatcher,
    signal: signal ?? null,
    // Compression would make the offsets of a resumed download meaningless.
    headers: { ...headers, 'accept-encoding': 'identity', ...(have > 0 ? { range: `bytes=${have}-` } : {}) },
  })
  if (statusCode === 416) {
    // Nothing behind what we have: it is whole, or longer than the file. The hash will tell.
    await body.dump()
    return
  }
  if (statusCode !== 200 && statusCode !== 206) {
    await body.dump()
    throw new HttpStatusError(statusCode, url)
  }
  let received = statusCode === 206 ? have : 0
  const length = Number(answer['content-length'])
  const total = Number.isFinite(length) ? received + length : undefined
  const count = async function* (chunks: AsyncIterable<Buffer>) {
    for await (const chunk of chunks) {
      received += chunk.length
      onBytes(received, total)
      yield chunk
    }
  }
  await pipeline(body, count, createWriteStream(partPath, { flags: received > 0 ? 'a' : 'w' }))
  if (total !== undefined && received < total) throw new Error('the connection closed early')
}

function isUnreachable(error: unknown): boolean {
  const code = (error as { code?: string }).code ?? ''
  return ['ENOTFOUND', 'ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'].includes(code)
}

export async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size
  } catch {
    return 0
  }
}

export async function discard(path: string): Promise<void> {
  await rm(path, { force: true })
}
