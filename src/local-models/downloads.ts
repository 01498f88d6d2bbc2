import type { PullProgress } from './files/model-files.ts'
import type { FetchEvents } from './local-models.ts'

/** The progress of model downloads. */
export interface ModelDownload {
  readonly model: string
  readonly receivedBytes: number
  readonly totalBytes: number | undefined
  /** Over the last seconds. */
  readonly bytesPerSecond: number
  /** Why the last attempt failed. It is retried automatically. */
  readonly problem: string | undefined
}

export interface Downloads extends FetchEvents {
  /** Downloads that are under way or failed, in the order in which they began. */
  list(): readonly ModelDownload[]
}

interface Received {
  readonly atMs: number
  readonly bytes: number
}

/** What the speed is measured over. */
const SPEED_MS = 5000

/** `now` is a monotonic clock. */
export function downloadList(now: () => number): Downloads {
  const current = new Map<string, Omit<ModelDownload, 'bytesPerSecond'> & { readonly received: readonly Received[] }>()

  const recent = (received: readonly Received[]): readonly Received[] =>
    received.filter(({ atMs }) => atMs > now() - SPEED_MS)

  return {
    progress({ slug, receivedBytes, totalBytes }: PullProgress) {
      const received = [...recent(current.get(slug)?.received ?? []), { atMs: now(), bytes: receivedBytes }]
      current.set(slug, { model: slug, receivedBytes, totalBytes, problem: undefined, received })
    },
    ready: (slug) => void current.delete(slug),
    stopped: (slug) => void current.delete(slug),
    failed(slug, problem) {
      const { receivedBytes = 0, totalBytes } = current.get(slug) ?? {}
      current.set(slug, { model: slug, receivedBytes, totalBytes, problem, received: [] })
    },
    list: () =>
      [...current.values()].map(({ received, ...download }) => ({
        ...download,
        bytesPerSecond: speedOf(recent(received), now()),
      })),
  }
}

/** 0 when nothing has arrived for a while, or an attempt began again. */
function speedOf(received: readonly Received[], nowMs: number): number {
  const [first, last] = [received.at(0), received.at(-1)]
  if (!first || !last || nowMs <= first.atMs) return 0
  return Math.max(0, Math.round(((last.bytes - first.bytes) * 1000) / (nowMs - first.atMs)))
}
