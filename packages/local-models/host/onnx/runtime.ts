import type { Loader } from '../../contract.ts'
import type { EngineModel } from '../runtime/engine-model.ts'
import type { EngineRuntime, RuntimeOptions } from '../runtime/engine-runtime.ts'
import { loadReranker } from './bi-encoder-reranker.ts'
import type { OnnxLoading } from './model-loading.ts'
import { loadSentenceEncoder } from './sentence-encoder.ts'
import { loadMoonshine } from './moonshine.ts'
import { openSession } from './session.ts'
import { loadStarterImage } from './starter-image.ts'
import { loadStarterVision } from './starter-vision.ts'
import { loadWhisper } from './whisper.ts'

const loaders: Readonly<Partial<Record<Loader, (loading: OnnxLoading) => Promise<EngineModel>>>> = {
  'starter-image': loadStarterImage,
  'starter-vision': loadStarterVision,
  'sentence-encoder': loadSentenceEncoder,
  'bi-encoder-reranker': loadReranker,
  whisper: loadWhisper,
  moonshine: loadMoonshine,
}

/** onnxruntime, on the CPU. */
export async function onnxRuntime({ threads }: RuntimeOptions): Promise<EngineRuntime> {
  return {
    name: 'onnx',
    async load(model, path) {
      const loader = loaders[model.loader]
      if (!loader) throw new Error(`the ONNX runtime cannot load '${model.loader}' models`)
      const { memoryBytes, settings = {}, catalog } = model
      return loader({ open: openSession(threads), path, memoryBytes, settings, contextTokens: catalog.context_length })
    },
    async describe() {
      return { device: 'cpu', threads }
    },
    async close() {},
  }
}
