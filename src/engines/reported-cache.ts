import type { CacheSizeQuery } from '../catalog/model.ts'
import type { EngineAddress } from './address.ts'

/** A server that has just started may not know yet. */
const POLL_MS = 30_000
const ANSWER_MS = 5000
/** The metrics of a server may be long. */
const ANSWER_BYTES_MAX = 4 * 1024 * 1024

export interface CacheWatch {
  /** The server was down, and may return with a different cache. */
  pollAgain(): void
  stop(): void
}

/** Asks a server for the size of its cache until it reports one. One request at a time, half a minute apart. */
export function watchCacheSize(
  address: EngineAddress,
  question: CacheSizeQuery,
  lines: string,
  reported: (tokens: number) => void,
): CacheWatch {
  const stopped = new AbortController()
  let timer: NodeJS.Timeout | undefined

  async function poll(): Promise<void> {
    timer = undefined
    const answer = await read(address, question.path, lines, stopped.signal).catch(() => undefined)
    if (stopped.signal.aborted) return
    const tokens = answer === undefined ? undefined : question.read(answer)
    if (tokens === undefined) pollAgain()
    else reported(tokens)
  }

  function pollAgain(): void {
    timer ??= setTimeout(() => void poll(), POLL_MS).unref()
  }

  void poll()
  return {
    pollAgain,
    stop() {
      stopped.abort()
      clearTimeout(timer)
    },
  }
}

/** undefined if the server's answer does not contain it. */
async function read(
  address: EngineAddress,
  path: string,
  lines: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const limits = { timeoutMs: ANSWER_MS, maxBytes: ANSWER_BYTES_MAX, signal }
  const { status, isWhole, body } = await address.query(path, lines, limits)
  return status === 200 && isWhole ? body : undefined
}
