import { mkdirSync } from 'node:fs'
import { hostname } from 'node:os'
import type { Catalog } from '../catalog/catalog.ts'
import { deploymentsOf } from '../catalog/model.ts'
import { count } from '../shared/counts.ts'
import { reservedBytes, type DiskSpace } from '../shared/disk-room.ts'
import { ApiError } from '../shared/errors.ts'
import type { LoadedModel, ManifestModel } from '../../packages/local-models/contract.ts'
import type { Downloads } from './downloads.ts'
import type { Removal } from './files/model-files.ts'
import { RUNTIME_NAME } from './files/runtime-files.ts'
import { findModel, manifest, modelBytes, runtimeBytes, whyUnknown } from './installed.ts'
import type { LocalFilesState, LocalMemory, LocalModels, LocalModelState } from './local-models.ts'

/** What the operator sees of the models that this machine can run, and does with them. */
export interface OperatorModels {
  list(): Promise<LocalModelsView>
  /** The model with its state; for the audit log and as an answer. */
  find(slug: string): Promise<LocalModelView>
  download(slug: string): Promise<void>
  pause(slug: string): Promise<void>
  /** Refuses while requests run or wait. */
  remove(slug: string): Promise<Removal>
}

export interface LocalModelsView {
  readonly machine: {
    readonly host: string
    readonly directory: string
    readonly disk: DiskSpace & { readonly reserved: number }
    readonly memory: LocalMemory
    readonly runtime: { readonly state: LocalFilesState; readonly bytes: number; readonly receivedBytes: number }
  }
  readonly models: readonly LocalModelView[]
}

/** `after_unloading`: idle models have to leave the memory first. */
export const fits = ['now', 'after_unloading', 'no'] as const

export interface LocalModelView extends LocalModelState {
  readonly model: ManifestModel
  readonly bytes: number
  readonly bytesPerSecond: number
  /** The models of the catalog that run on it. */
  readonly catalogModels: readonly string[]
  readonly sharedWith: readonly string[]
  /** What other models leave of the memory. */
  readonly availableBytes: number
  readonly fits: (typeof fits)[number]
  readonly isLoaded: boolean
  /** Requests of this process that run or wait. */
  readonly requests: number
}

/** The load of a lane in this process. */
interface Load {
  readonly inFlightRequests: number
  readonly queueDepth: number
}

export function operatorModels(parts: {
  readonly local: LocalModels
  readonly downloads: Downloads
  readonly catalog: Pick<Catalog, 'models'>
  load(): ReadonlyMap<string, Load>
  diskSpace(): Promise<DiskSpace>
  readonly directory: string
}): OperatorModels {
  const { local, downloads, catalog, load, directory } = parts

  function requireModel(slug: string): ManifestModel {
    const model = findModel(slug)
    // A file of the operator's has an entry in the catalog, but is not for this page to download or remove.
    if (!model || model.delivery === 'own')
      throw new ApiError('not_found', `Not found: ${whyUnknown(slug.slice(0, 200))}.`, { param: 'model' })
    return model
  }

  const using = (model: ManifestModel): { readonly id: string; readonly lane: string }[] =>
    catalog.models().flatMap((listed) =>
      deploymentsOf(listed).flatMap(({ lane, engine }) => {
        const isUsed = engine?.kind === 'embedded' && findModel(engine.model) === model
        return isUsed ? [{ id: listed.id, lane }] : []
      }),
    )

  function requestsOf(model: ManifestModel): number {
    const lanes = load()
    const loads = using(model).map(({ lane }) => lanes.get(lane))
    return loads.reduce((sum, it) => sum + (it ? it.inFlightRequests + it.queueDepth : 0), 0)
  }

  function view(model: ManifestModel, { budgetBytes, loaded }: LocalMemory): LocalModelView {
    const { id } = model.catalog
    const download = downloads.list().find((it) => it.model === id)
    const others = loaded[model.runtime].filter((it) => it.model !== id)
    const availableBytes = budgetBytes - bytesOf(others)
    return {
      ...local.stateOf(id),
      model,
      bytes: modelBytes(model),
      bytesPerSecond: download?.bytesPerSecond ?? 0,
      catalogModels: [...new Set(using(model).map((it) => it.id))],
      sharedWith: local.sharing(id),
      availableBytes: Math.max(0, availableBytes),
      fits: model.memoryBytes <= availableBytes ? 'now' : model.memoryBytes <= budgetBytes ? 'after_unloading' : 'no',
      isLoaded: loaded[model.runtime].some((it) => it.model === id),
      requests: requestsOf(model),
    }
  }

  return {
    async list() {
      mkdirSync(directory, { recursive: true })
      const [memory, disk] = await Promise.all([local.memory(), parts.diskSpace()])
      const receivedBytes = downloads.list().find((it) => it.model === RUNTIME_NAME)?.receivedBytes ?? 0
      return {
        machine: {
          host: hostname(),
          directory,
          disk: { ...disk, reserved: reservedBytes(disk.size) },
          memory,
          runtime: { state: local.runtimeState(), bytes: runtimeBytes, receivedBytes },
        },
        models: manifest.map((model) => view(model, memory)),
      }
    },
    async find(slug) {
      return view(requireModel(slug), await local.memory())
    },
    async download(slug) {
      const model = requireModel(slug)
      try {
        await local.download(model.catalog.id)
      } catch (error) {
        throw new ApiError('conflict', (error as Error).message, { param: 'model', cause: error })
      }
    },
    async pause(slug) {
      const { id } = requireModel(slug).catalog
      if (local.stateOf(id).state === 'ready') {
        throw new ApiError('conflict', `${id} is downloaded, so there is nothing to pause.`, { param: 'model' })
      }
      local.pause(id)
    },
    async remove(slug) {
      const model = requireModel(slug)
      const { id } = model.catalog
      if (model.delivery === 'box') {
        throw new ApiError('conflict', `${id} is shipped with Weir and cannot be removed.`, { param: 'model' })
      }
      const together = [model, ...local.sharing(id).map(requireModel)]
      const requests = together.reduce((sum, it) => sum + requestsOf(it), 0)
      if (requests > 0) {
        const message = `${id} is in use: ${count(requests)} ${requests === 1 ? 'request runs or waits' : 'requests run or wait'}. Try again when they have ended.`
        throw new ApiError('conflict', message, { param: 'model' })
      }
      return local.remove(id)
    },
  }
}

const bytesOf = (loaded: readonly LoadedModel[]): number => loaded.reduce((sum, { bytes }) => sum + bytes, 0)
