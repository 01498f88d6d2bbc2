import type { ManifestModel, RuntimeName } from '../../contract.ts'
import type { EngineModel } from './engine-model.ts'

export interface RuntimeOptions {
  readonly threads: number
  /** How many requests one model answers at the same time. */
  readonly parallelRequests: number
  /** If false, the CPU computes even when there is a GPU. */
  readonly gpu: boolean
  log(message: string): void
}

export interface EngineRuntime {
  readonly name: RuntimeName
  /** `path` finds one of the model's files by its role. */
  load(model: ManifestModel, path: (role: string) => string): Promise<EngineModel>
  describe(): Promise<Readonly<Record<string, string | number | boolean>>>
  close(): Promise<void>
}
