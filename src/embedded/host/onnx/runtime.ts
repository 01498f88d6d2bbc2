import type { EngineModel } from '../runtime/engine-model.ts'
import type { EngineRuntime, RuntimeOptions } from '../runtime/engine-runtime.ts'
import type { Loader, ModelSettings } from '../../manifest/types.ts'
import { loadReranker } from './bi-encoder-reranker.ts'
import { loadSentenceEncoder } from './sentence-encoder.ts'
import { openSession } from './session.ts'
import type { OpenSession } from './session.ts'
import { loadStarterImage } from './starter-image.ts'
import { loadStarterVision } from './starter-vision.ts'
import { loadWhisper } from './whisper.ts'

export interface ModelLoading {
  open: OpenSession
  path: (role: string) => string
  memoryBytes: number
  contextTokens: number
  settings: ModelSettings
}

const loaders: Partial<Record<Loader, (loading: ModelLoading) => Promise<EngineModel>>> = {
  'starter-image': loadStarterImage,
  'starter-vision': loadStarterVision,
  'sentence-encoder': loadSentenceEncoder,
  'bi-encoder-reranker': loadReranker,
  whisper: loadWhisper,
}

export async function onnxRuntime({ threads }: RuntimeOptions): Promise<EngineRuntime> {
  return {
    async load(model, path) {
      const loader = loaders[model.loader]
      if (!loader) throw new Error(`The ONNX runtime cannot load '${model.loader}' models.`)
      const { memoryBytes, settings = {}, catalog } = model
      return loader({ open: openSession(threads), path, memoryBytes, settings, contextTokens: catalog.context_length })
    },
    async describe() {
      return { device: 'cpu', threads }
    },
    async close() {},
  }
}
