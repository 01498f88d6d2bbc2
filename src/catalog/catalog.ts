import { statSync, type Stats } from 'node:fs'
import { stat } from 'node:fs/promises'
import { deploymentFor, isVisible, type Deployment, type Model } from '../core/catalog.ts'
import { ApiError } from '../core/errors.ts'
import type { CatalogSource } from './file.ts'

/** The models on offer now. A reload replaces all of them at once; running requests keep the model they started with. */
export interface Catalog {
  models(): readonly Model[]
  /** Finds a model by slug or alias, if the workspace may see it. */
  find(name: string, workspace: string): Model | undefined
  /** The model and the deployment that serves the workspace; throws an `ApiError` when there is none. */
  resolve(name: string, workspace: string): { readonly model: Model; readonly deployment: Deployment }
  /** Reads the file again. Throws on a mistake in the file, and keeps the old catalog. */
  reload(): Promise<void>
}

/**
 * `prepare` runs before a new catalog is visible (it stores prices) and returns a function that runs at the moment
 * the catalog becomes visible (it switches queues and engines over).
 */
export async function openCatalog(
  source: CatalogSource,
  prepare: (models: readonly Model[]) => Promise<() => void>,
): Promise<Catalog> {
  let models: readonly Model[] = []
  let byName = new Map<string, Model>()
  let reloading: Promise<void> = Promise.resolve()

  async function load(): Promise<void> {
    const loaded = source.read()
    const switchOver = await prepare(loaded)
    switchOver()
    models = loaded
    byName = new Map(loaded.flatMap((model) => [model.id, ...model.aliases].map((name) => [name, model])))
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
          `The model '${name.slice(0, 200)}' does not exist. GET /api/v1/models lists the available models.`,
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
          `${model.id} runs only on reserved capacity, and this workspace has none.`,
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

const POLL_MS = 500

/**
 * Watches a file by polling, which works on every file system, with editors that rename, and with the symbolic links
 * of mounted volumes. Call it before reading the file, so that no change is missed.
 */
export function watchFile(file: string): { onChange(changed: () => void): () => void } {
  let last = fingerprint(statSync(file, { throwIfNoEntry: false }))
  return {
    onChange(changed) {
      async function poll(): Promise<void> {
        const current = fingerprint(await stat(file).catch(() => undefined))
        // The file is missing for a moment while an editor replaces it.
        if (current === undefined || current === last) return
        last = current
        changed()
      }
      const timer = setInterval(() => void poll(), POLL_MS)
      timer.unref()
      return () => clearInterval(timer)
    },
  }
}

function fingerprint(file: Stats | undefined): string | undefined {
  return file && `${file.mtimeMs} ${file.size} ${file.ino}`
}
