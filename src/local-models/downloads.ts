import type { PullProgress } from './files/model-files.ts'
import type { FetchEvents } from './local-models.ts'

/** The progress of model downloads. */
export interface ModelDownload {
  readonly model: string
  readonly receivedBytes: number
  readonly totalBytes: number | undefined
  /** Why the last attempt failed. It is retried automatically. */
  readonly problem: string | undefined
}

export interface Downloads extends FetchEvents {
  /** Downloads that are under way or failed, in the order in which they began. */
  list(): readonly ModelDownload[]
}

export function downloadList(): Downloads {
  const current = new Map<string, ModelDownload>()
  return {
    progress({ slug, receivedBytes, totalBytes }: PullProgress) {
      current.set(slug, { model: slug, receivedBytes, totalBytes, problem: undefined })
    },
    ready: (slug) => void current.delete(slug),
    failed(slug, problem) {
      const { receivedBytes = 0, totalBytes } = current.get(slug) ?? {}
      current.set(slug, { model: slug, receivedBytes, totalBytes, problem })
    },
    list: () => [...current.values()],
  }
}
