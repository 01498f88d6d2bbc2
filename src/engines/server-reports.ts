import type { CacheSizeQuery, EngineKind, LoadQuery, ReportedLoad } from '../catalog/model.ts'
import type { EngineAddress } from './address.ts'

/** What a server reports about itself: the size of its cache, and its load. */

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
    const answer = await read(address, question.path, lines, { timeoutMs: ANSWER_MS, signal: stopped.signal }).catch(
      () => undefined,
    )
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

/** A scrape of the metrics waits for it. */
const LOAD_ANSWER_MS = 1000
/** Several readers share an answer that is not older. */
const LOAD_FRESH_MS = 5000

export interface LoadReader {
  /** Asks the server, unless it has just answered. Never rejects. */
  read(): Promise<void>
  /** undefined if the server did not report it. */
  load(): ReportedLoad | undefined
}

/**
 * Asks only when the load is read, so a server is not asked for what nothing shows. Deployments that use the same server
 * share an answer, if their engines are of the same kind and have the same key.
 */
export function openLoadReader(
  address: EngineAddress,
  { kind, question, lines }: { readonly kind: EngineKind; readonly question: LoadQuery; readonly lines: string },
  now = (): number => performance.now(),
): LoadReader {
  const { loads } = address.activity
  const key = `${kind} ${lines}`
  const shared = loads.get(key) ?? { load: undefined, readAt: -Infinity, reading: undefined }
  loads.set(key, shared)

  async function ask(): Promise<void> {
    shared.readAt = now()
    const answer = await read(address, question.path, lines, { timeoutMs: LOAD_ANSWER_MS }).catch(() => undefined)
    shared.load = answer === undefined ? undefined : question.read(answer)
    shared.reading = undefined
  }

  return {
    async read() {
      if (!address.healthy) return
      if (shared.reading === undefined && now() - shared.readAt >= LOAD_FRESH_MS) shared.reading = ask()
      await shared.reading
    },
    load: () => (address.healthy ? shared.load : undefined),
  }
}

/** undefined if the server's answer does not contain it. */
async function read(
  address: EngineAddress,
  path: string,
  lines: string,
  given: { readonly timeoutMs: number; readonly signal?: AbortSignal },
): Promise<string | undefined> {
  const limits = { ...given, maxBytes: ANSWER_BYTES_MAX }
  const { status, isWhole, body } = await address.query(path, lines, limits)
  return status === 200 && isWhole ? body : undefined
}
