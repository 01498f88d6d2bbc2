import type { EngineModel } from './engine-model.ts'
import type { ManifestModel, RuntimeName } from '../../manifest/types.ts'

export interface RuntimeOptions {
  threads: number
  /** Answers one model gives at the same time. */
  parallelRequests: number
  /** False: the processor computes, even where there is a GPU. */
  gpu: boolean
  log(message: string): void
}

export interface EngineRuntime {
  readonly name: RuntimeName
  /** `path` gives the place of a file by its role. */
  load(model: ManifestModel, path: (role: string) => string): Promise<EngineModel>
  describe(): Promise<Record<string, string | number | boolean>>
  close(): Promise<void>
}
