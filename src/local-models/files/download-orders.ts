import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** What the operator wants of a download. */
export type Order = 'download' | 'pause' | 'remove'

/** What is kept about a download besides its files. */
export interface DownloadNote {
  readonly order?: Order | undefined
  /** Why the last attempt failed. */
  readonly problem?: string | undefined
}

/**
 * Kept beside the models, one file for each: a service that starts again downloads nothing that was paused or removed,
 * and every process of the machine finds the same.
 */
export interface DownloadOrders {
  of(slug: string): DownloadNote
  set(slug: string, note: DownloadNote): void
}

export function downloadOrders(modelsDirectory: string): DownloadOrders {
  const directory = join(modelsDirectory, '.orders')
  const pathOf = (slug: string): string => join(directory, `${slug.replaceAll('/', '+')}.json`)
  return {
    of(slug) {
      try {
        return JSON.parse(readFileSync(pathOf(slug), 'utf8')) as DownloadNote
      } catch {
        return {}
      }
    },
    set(slug, { order, problem }) {
      const path = pathOf(slug)
      if (order === undefined && problem === undefined) return rmSync(path, { force: true })
      mkdirSync(directory, { recursive: true })
      // Renamed, because another process may be reading it.
      const written = `${path}.${process.pid}`
      writeFileSync(written, JSON.stringify({ order, problem }))
      renameSync(written, path)
    },
  }
}
