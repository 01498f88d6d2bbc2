import type { CacheSizeQuestion } from '../core/catalog.ts'
import { pathAt, type EngineAddress } from './address.ts'

/** A server that has just started may not know yet. */
const ASK_AGAIN_MS = 30_000
const ANSWER_MS = 5000
/** The metrics of a server may be long. */
const ANSWER_BYTES_MAX = 4 * 1024 * 1024

export interface CacheWatch {
  /** The server was away, and may come back with another cache. */
  askAgain(): void
  stop(): void
}

/** Asks a server how large its cache is, until it says so. One question at a time, and half a minute between two. */
export function watchCacheSize(
  address: EngineAddress,
  question: CacheSizeQuestion,
  headers: Record<string, string>,
  reported: (tokens: number) => void,
): CacheWatch {
  const stopped = new AbortController()
  let timer: NodeJS.Timeout | undefined

  async function ask(): Promise<void> {
    timer = undefined
    const answer = await read(address, question.path, headers, stopped.signal).catch(() => undefined)
    if (stopped.signal.aborted) return
    const tokens = answer === undefined ? undefined : question.read(answer)
    if (tokens === undefined) askAgain()
    else reported(tokens)
  }

  function askAgain(): void {
    timer ??= setTimeout(() => void ask(), ASK_AGAIN_MS).unref()
  }

  void ask()
  return {
    askAgain,
    stop() {
      stopped.abort()
      clearTimeout(timer)
    },
  }
}

/** undefined if the server answers, but not with what was asked for. */
async function read(
  address: EngineAddress,
  path: string,
  headers: Record<string, string>,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { statusCode, body } = await address.pool.request({
    method: 'GET',
    path: pathAt(address, path),
    headers,
    headersTimeout: ANSWER_MS,
    bodyTimeout: ANSWER_MS,
    signal,
  })
  if (statusCode !== 200) {
    await body.dump({ limit: 65_536 })
    return undefined
  }
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length
    // Leaving the loop ends the connection.
    if (bytes > ANSWER_BYTES_MAX) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}
