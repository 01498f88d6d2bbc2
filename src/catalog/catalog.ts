import { statSync, type Stats } from 'node:fs'
import { stat } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { ConfigError } from '../shared/checked-yaml.ts'
import { deploymentFor, isVisible, type Deployment, type Model } from './model.ts'
import { ApiError } from '../shared/errors.ts'
import { withoutDeployment } from './unavailable-model.ts'
import type { CatalogSource } from './file.ts'
import { lossesIn } from './lost-prices.ts'

/** The models on offer now. A reload replaces all of them at once; running requests keep their model. */
export interface Catalog {
  models(): readonly Model[]
  /** Finds a model by slug or alias, if the workspace may see it. */
  find(name: string, workspace: string): Model | undefined
  /** The model and the deployment that serves the workspace; throws an `ApiError` when there is none. */
  resolve(name: string, workspace: string): { readonly model: Model; readonly deployment: Deployment }
  /**
   * Reads the file again, once it is no longer being written. Throws on a mistake in the file, and keeps the old
   * catalog. Unless forced, it also refuses a catalog without models, and one that has lost prices.
   */
  reload(options?: { readonly force: boolean }): Promise<void>
  /** Applies the current models again, with these changes. The file is not read. */
  change(change: (models: readonly Model[]) => readonly Model[]): Promise<void>
}

/** When a file counts as completely written: two polls have found the same content. */
export interface FilePolling {
  readonly pollMs: number
  readonly pollsMax: number
}

const usualPolling: FilePolling = { pollMs: 200, pollsMax: 50 }

/**
 * `prepare` runs before a new catalog is visible (it stores prices) and returns a function that runs at the moment
 * the catalog becomes visible (it switches queues and engines over).
 */
export async function openCatalog(
  source: CatalogSource,
  prepare: (models: readonly Model[]) => Promise<() => void>,
  polling = usualPolling,
): Promise<Catalog> {
  let models: readonly Model[] = []
  let byName = new Map<string, Model>()
  let reloading: Promise<void> = Promise.resolve()

  async function reload(force: boolean): Promise<void> {
    const loaded = await readComplete(source, polling)
    const losses = force ? [] : lossesIn(models, loaded)
    if (losses.length > 0) {
      throw new ConfigError(`${source.file}: ${losses.join('; ')}. If that is intended, run weir reload --force`)
    }
    await take(loaded)
  }

  async function take(loaded: readonly Model[]): Promise<void> {
    const switchOver = await prepare(loaded)
    switchOver()
    models = loaded
    byName = new Map(loaded.flatMap((model) => [model.id, ...model.aliases].map((name) => [name, model])))
  }

  function inTurn(work: () => Promise<void>): Promise<void> {
    const next = reloading.then(work)
    reloading = next.catch(() => {})
    return next
  }

  function find(name: string, workspace: string): Model | undefined {
    const model = byName.get(name)
    return model && isVisible(model, workspace) ? model : undefined
  }

  await take(source.read())
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
      throw withoutDeployment(model).error
    },
    reload: ({ force } = { force: false }) => inTurn(() => reload(force)),
    change: (change) => inTurn(() => take(change(models))),
  }
}

async function readComplete(
  { file, read }: CatalogSource,
  { pollMs, pollsMax }: FilePolling,
): Promise<readonly Model[]> {
  if (file === undefined) return read()
  let seen = await fingerprintAt(file)
  for (let polls = 1; polls < pollsMax; polls++) {
    await sleep(pollMs)
    const now = await fingerprintAt(file)
    if (now === seen) {
      const models = read()
      if ((await fingerprintAt(file)) === seen) return models
    }
    seen = now
  }
  throw new ConfigError(`${file}: is still being written`)
}

const POLL_MS = 500

/**
 * Watches a file by polling, which works on every file system, with editors that rename, and with the symbolic links of
 * mounted volumes. Reports a change once two polls have found the same content. Call it before reading the file, so
 * that no change is missed.
 */
export function watchFile(file: string): { onChange(changed: () => void): () => void } {
  let reported = fingerprint(statSync(file, { throwIfNoEntry: false }))
  let seen = reported
  return {
    onChange(changed) {
      async function poll(): Promise<void> {
        const now = await fingerprintAt(file)
        const isComplete = now === seen
        seen = now
        // The file is missing for a moment while an editor replaces it.
        if (now === undefined || !isComplete || now === reported) return
        reported = now
        changed()
      }
      const timer = setInterval(() => void poll(), POLL_MS)
      timer.unref()
      return () => clearInterval(timer)
    },
  }
}

async function fingerprintAt(file: string): Promise<string | undefined> {
  return fingerprint(await stat(file).catch(() => undefined))
}

function fingerprint(file: Stats | undefined): string | undefined {
  return file && `${file.mtimeMs} ${file.size} ${file.ino}`
}
