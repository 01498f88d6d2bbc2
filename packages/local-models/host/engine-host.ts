import { rm } from 'node:fs/promises'
import { HostError } from './runtime/host-error.ts'
import { findModel } from '../manifest/manifest.ts'
import type { ManifestModel, ModelPaths } from '../contract.ts'
import { hostServer } from './host-server.ts'
import { loadedModels, type LoadableModel } from './loaded-models.ts'
import type { EngineRuntime } from './runtime/engine-runtime.ts'

export interface EngineHostOptions {
  readonly runtime: EngineRuntime
  /** The models it knows. It refuses those of the other runtime. */
  readonly models: readonly ManifestModel[]
  readonly paths: ModelPaths
  readonly memoryBudgetBytes: number
  log(message: string): void
}

export interface EngineHost {
  listen(socketPath: string): Promise<void>
  /** Closes idle connections at once, lets requests in flight finish, and then frees the models. */
  close(): Promise<void>
}

/** One runtime, its models in memory, and the HTTP server in front of them. */
export function engineHost({ runtime, models, paths, memoryBudgetBytes, log }: EngineHostOptions): EngineHost {
  const loaded = loadedModels({ memoryBudgetBytes, log, find })
  const server = hostServer({ models: loaded, health, unload: loaded.unload, log })

  function find(slug: string): LoadableModel {
    const model = findModel(slug, models)
    if (model?.runtime !== runtime.name) {
      throw new HostError('model_not_found', `The ${runtime.name} engine does not know the model '${slug}'.`, {
        param: 'model',
      })
    }
    if (!paths.isPresent(model)) {
      throw new HostError('model_not_configured', `${slug} is not downloaded.`, {
        param: 'model',
      })
    }
    return {
      slug: model.catalog.id,
      expectedBytes: model.memoryBytes,
      load: () => runtime.load(model, (role) => paths.ofRole(model, role)),
    }
  }

  async function health(): Promise<object> {
    return {
      status: 'ok',
      runtime: runtime.name,
      ...(await runtime.describe()),
      loaded: loaded.list(),
      model_bytes: loaded.memoryBytes(),
      active_requests: loaded.activeRequests(),
    }
  }

  return {
    async listen(socketPath) {
      await rm(socketPath, { force: true })
      await new Promise<void>((resolve) => server.listen(socketPath, resolve))
    },
    async close() {
      await new Promise((resolve) => server.close(resolve))
      await loaded.close()
      await runtime.close()
    },
  }
}
