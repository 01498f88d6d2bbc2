import type { Llama, LlamaModel } from 'node-llama-cpp'
import type { Sampling } from '../runtime/engine-model.ts'
import type { RuntimeOptions } from '../runtime/engine-runtime.ts'
import type { ThreadPace } from './thread-pace.ts'

/** What every GGUF loader gets: the opened weights and how to run them. */
export interface LlamaLoading {
  readonly llama: Llama
  readonly model: LlamaModel
  readonly options: RuntimeOptions
  readonly contextTokens: number
  /** Used for sampling parameters that the caller leaves out. */
  readonly sampling: Partial<Sampling>
  readonly pace: ThreadPace
  /** True when no layer is on the GPU: a full GPU must then not prevent the context. */
  readonly ignoreMemorySafetyChecks: boolean
}
