import { createWriteStream, readFileSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import timers from 'node:timers/promises'
import { EnvHttpProxyAgent, interceptors, request, type Dispatcher } from 'undici'
import { backoffMs } from '../../shared/backoff.ts'

export interface FileAddress {
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  /** A file with certificates to trust instead of the usual ones. */
  readonly certificates?: string | undefined
}

export interface DownloadOptions extends FileAddress {
  /** Grows as bytes arrive. A later attempt continues from it. */
  readonly partPath: string
  onBytes(received: number, total: number | undefined): void
  readonly signal?: AbortSignal | undefined
}

const MAX_ATTEMPTS = 5
const MAX_REDIRECTIONS = 10
const CONNECT_TIMEOUT_MS = 10_000
/** A connection that receives nothing for this long is dead. */
const STALL_MS = 60_000
const FIRST_RETRY_MS = 500

const dispatchers = new Map<string, Dispatcher>()

/** Takes proxies from the environment, and the certificates to trust from a file if there is one. */
export function dispatcherFor(certificates?: string): Dispatcher {
  const known = dispatchers.get(certificates ?? '')
  if (known) return known
  const trust = certificates === undefined ? {} : { ca: readFileSync(certificates) }
  const dispatcher = new EnvHttpProxyAgent({
    connect: { timeout: CONNECT_TIMEOUT_MS, ...trust },
    requestTls: trust,
    headersTimeout: STALL_MS,
    bodyTimeout: STALL_MS,
  })
  dispatchers.set(certificates ?? '', dispatcher)
  return dispatcher
}

/** undici drops credentials when a redirect leaves the origin. */
const followRedirects = interceptors.redirect({ maxRedirections: MAX_REDIRECTIONS })

export class HttpStatusError extends Error {
  readonly status: number
  constructor(status: number, url: string) {
    super(`${new URL(url).host} answered ${status}`)
    this.status = status
  }
}

/** Fetches into `partPath`. Continues where an earlier attempt, of this process or another, stopped. */
export async function download(options: DownloadOptions): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const before = await sizeOf(options.partPath)
    try {
      return await fetchRest(options, before)
    } catch (error) {
      options.signal?.throwIfAborted()
      if (error instanceof HttpStatusError && error.status < 500 && error.status !== 429) throw error
      // Count only attempts that receive nothing: a large file over a bad line is cut off often, but makes progress.
      if ((await sizeOf(options.partPath)) > before) attempt = 0
      if (attempt >= MAX_ATTEMPTS || isUnreachable(error)) throw error
      const pauseMs = backoffMs(attempt, FIRST_RETRY_MS, Infinity)
      await timers.setTimeout(pauseMs, undefined, options.signal ? { signal: options.signal } : {})
    }
  }
}

async function fetchRest(
  { url, headers, certificates, partPath, onBytes, signal }: DownloadOptions,
  have: number,
): Promise<void> {
  const answer = await request(url, {
    dispatcher: dispatcherFor(certificates).compose(followRedirects),
    signal: signal ?? null,
    // Compression would make the offsets of a resumed download meaningless.
    headers: { ...headers, 'accept-encoding': 'identity', ...(have > 0 ? { range: `bytes=${have}-` } : {}) },
  })
  const { statusCode, body } = answer
  if (statusCode === 416) {
    // There is nothing after what we have: it is complete, or longer than the file. The hash will show which.
    await body.dump()
    return
  }
  if (statusCode !== 200 && statusCode !== 206) {
    await body.dump()
    throw new HttpStatusError(statusCode, url)
  }
  let received = statusCode === 206 ? have : 0
  const length = Number(answer.headers['content-length'])
  const total = Number.isFinite(length) ? received + length : undefined
  const count = async function* (chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of chunks) {
      received += chunk.length
      onBytes(received, total)
      yield chunk
    }
  }
  await pipeline(body, count, createWriteStream(partPath, { flags: received > 0 ? 'a' : 'w' }))
}

function isUnreachable(error: unknown): boolean {
  const code = (error as { code?: string }).code ?? ''
  return ['ENOTFOUND', 'ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'].includes(code)
}

/** 0 if there is no such file. */
export async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size
  } catch {
    return 0
  }
}
