import { statSync, type Stats } from 'node:fs'
import { stat } from 'node:fs/promises'
import { deploymentFor, isVisible, type Deployment, type Model } from '../core/catalog.ts'
import { ApiError } from '../core/errors.ts'
import type { CatalogSource } from './file.ts'

/** The models on offer now. A reload swaps all of them at once; requests under way keep what they have. */
export interface Catalog {
  models(): readonly Model[]
  /** By slug or short id, as one workspace sees it. */
  find(name: string, workspace: string): Model | undefined
  /** Where a workspace's request for a model goes; throws what the caller should know otherwise. */
  resolve(name: string, workspace: string): { readonly model: Model; readonly deployment: Deployment }
  /** Reads the file again. On a mistake the old catalog stays, and the mistake is thrown. */
  reload(): Promise<void>
}

/**
 * `prepare` makes a new catalog usable before anybody sees it (prices), and returns what has to happen in
 * the very moment in which everybody does (queues, engines).
 */
export async function openCatalog(
  source: CatalogSource,
  prepare: (models: readonly Model[]) => Promise<() => void>,
): Promise<Catalog> {
  let models: readonly Model[] = []
  let byName = new Map<string, Model>()
  let reloading: Promise<void> = Promise.resolve()

  async function load(): Promise<void> {
    const read = source.read()
    const takeOver = await prepare(read)
    takeOver()
    models = read
    byName = new Map(read.flatMap((model) => [model.id, ...model.aliases].map((name) => [name, model])))
  }

  function find(name: string, workspace: string): Model | undefined {
    const model = byName.get(name)
    return model && isVisible(model, workspace) ? model : undefined
  }

  await load()
  return {
    models: () => models,
    find,
    resolve(name, workspace) {
      const model = find(name, workspace)
      if (!model) {
        throw new ApiError(
          'model_not_found',
          `The model '${name.slice(0, 200)}' does not exist. GET /api/v1/models lists what does.`,
          {
            param: 'model',
          },
        )
      }
      const deployment = deploymentFor(model, workspace)
      if (deployment) return { model, deployment }
      if (model.dedicated.length > 0) {
        throw new ApiError(
          'model_access_denied',
          `${model.id} runs on reserved capacity that this workspace does not have.`,
          {
            param: 'model',
          },
        )
      }
      throw new ApiError('model_not_configured', `${model.id} has no engine yet. Try again later.`, { param: 'model' })
    },
    reload() {
      const next = reloading.catch(() => {}).then(load)
      reloading = next.catch(() => {})
      return next
    },
  }
}

const LOOK_MS = 500

/**
 * Looks at a file from now on. It looks rather than listens: that works on every file system and through
 * the renames of editors and the links of mounted volumes. Begun before the file is read, it misses nothing.
 */
export function watchFile(file: string): { onChange(changed: () => void): () => void } {
  let last = markOf(statSync(file, { throwIfNoEntry: false }))
  return {
    onChange(changed) {
      async function look(): Promise<void> {
        const seen = markOf(await stat(file).catch(() => undefined))
        // While an editor replaces the file there is none for a moment.
        if (seen === undefined || seen === last) return
        last = seen
        changed()
      }
      const timer = setInterval(() => void look(), LOOK_MS)
      timer.unref()
      return () => clearInterval(timer)
    },
  }
}

function markOf(file: Stats | undefined): string | undefined {
  return file && `${file.mtimeMs} ${file.size} ${file.ino}`
}
