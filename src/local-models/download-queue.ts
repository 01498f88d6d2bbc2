import { RUNTIME_NAME } from './files/runtime-files.ts'

/** `stopped`: by the operator. */
export type DownloadEnd = 'done' | 'failed' | 'stopped'

/**
 * The downloads of this process. Those of the catalog run one after the other, in their order, so that the first model
 * is ready soon; one that the operator asks for does not wait for them. A failed one is tried again later, after the
 * others.
 */
export interface DownloadQueue {
  add(name: string, options: { readonly isAsked: boolean }): void
  /** It runs or waits. */
  has(name: string): boolean
  isRunning(name: string): boolean
  /** Stops it if it runs. */
  drop(name: string): void
  close(): void
}

interface Entry {
  isAsked: boolean
  running?: AbortController
  retry?: NodeJS.Timeout
}

const MAX_AT_ONCE = 2
const RETRY_MS = 30_000

export function downloadQueue(start: (name: string, signal: AbortSignal) => Promise<DownloadEnd>): DownloadQueue {
  const entries = new Map<string, Entry>()

  function startNext(): void {
    for (const [name, entry] of entries) {
      const running = [...entries.values()].filter((it) => it.running)
      if (running.length >= MAX_AT_ONCE) return
      const waits =
        entry.running !== undefined ||
        entry.retry !== undefined ||
        // No model runs without it, so it is first.
        (name !== RUNTIME_NAME && entries.has(RUNTIME_NAME)) ||
        (!entry.isAsked && running.some((it) => !it.isAsked))
      if (!waits) void run(name, entry)
    }
  }

  async function run(name: string, entry: Entry): Promise<void> {
    const stop = (entry.running = new AbortController())
    const end = await start(name, stop.signal)
    delete entry.running
    const isDropped = entries.get(name) !== entry
    if (!isDropped && end === 'failed') entry.retry = setTimeout(() => again(entry), RETRY_MS).unref()
    else if (!isDropped) entries.delete(name)
    startNext()
  }

  function again(entry: Entry): void {
    clearTimeout(entry.retry)
    delete entry.retry
    startNext()
  }

  function drop(name: string): void {
    const entry = entries.get(name)
    entries.delete(name)
    clearTimeout(entry?.retry)
    entry?.running?.abort()
  }

  return {
    add(name, { isAsked }) {
      const entry = entries.get(name) ?? { isAsked }
      entry.isAsked ||= isAsked
      entries.set(name, entry)
      if (isAsked || !entry.retry) again(entry)
    },
    has: (name) => entries.has(name),
    isRunning: (name) => entries.get(name)?.running !== undefined,
    drop,
    close: () => [...entries.keys()].forEach(drop),
  }
}
