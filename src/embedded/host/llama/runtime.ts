import { getLlama, LlamaLogLevel } from 'node-llama-cpp'
import type { EngineModel } from '../runtime/engine-model.ts'
import type { EngineRuntime, RuntimeOptions } from '../runtime/engine-runtime.ts'
import type { Loader } from '../../manifest/types.ts'
import { loadChatModel } from './chat-model.ts'
import { loadEmbeddingModel } from './embedding-model.ts'
import { inGpuRoom } from './gpu-room.ts'
import type { GpuShare } from './gpu-room.ts'
import type { LlamaLoading } from './model-loading.ts'
import { loadRankingModel } from './ranking-model.ts'
import { processorTime, threadPace } from './thread-pace.ts'

const loaders: Partial<Record<Loader, (loading: LlamaLoading) => Promise<EngineModel>>> = {
  'gguf-chat': loadChatModel,
  'gguf-embedding': loadEmbeddingModel,
  'gguf-reranker': loadRankingModel,
}

/** llama.cpp. The GPU is used when its package is installed and a device answers; nothing is ever compiled or fetched. */
export async function llamaRuntime(options: RuntimeOptions): Promise<EngineRuntime> {
  const llama = await getLlama({
    // Unsaid, NODE_LLAMA_CPP_GPU decides, and else what is found.
    ...(options.gpu ? {} : { gpu: false }),
    build: 'never',
    skipDownload: true,
    progressLogs: false,
    maxThreads: options.threads,
    logLevel: LlamaLogLevel.error,
    logger: (level, message) => options.log(`llama.cpp ${level}: ${message}`),
  })
  const pace = threadPace({
    // With a GPU the threads wait for it most of the time: how busy they are says nothing.
    threads: llama.gpu === false ? options.threads : 1,
    set: (threads) => {
      llama.maxThreads = threads
    },
    read: processorTime,
  })
  return {
    name: 'llama',
    async load({ catalog, loader: name, settings }, path) {
      const loader = loaders[name]
      if (!loader) throw new Error(`The llama runtime cannot load '${name}' models.`)
      const load = async (gpuLayers?: GpuShare): Promise<EngineModel> => {
        const modelPath = path('model')
        const model = await llama.loadModel({ modelPath, ...(gpuLayers === undefined ? {} : { gpuLayers }) })
        const contextTokens = Math.min(catalog.context_length, model.trainContextSize)
        const sampling = settings?.sampling ?? {}
        const ignoreMemorySafetyChecks = gpuLayers === 0
        try {
          return await loader({ llama, model, options, contextTokens, sampling, pace, ignoreMemorySafetyChecks })
        } catch (error) {
          await model.dispose()
          throw error
        }
      }
      if (llama.gpu === false) return load()
      const isChat = name === 'gguf-chat'
      const contextSize = (isChat ? options.parallelRequests : 1) * catalog.context_length
      return inGpuRoom({ contextSize, embeddingContext: !isChat }, load, () =>
        options.log(`no room on the GPU for ${catalog.id}: the processor computes`),
      )
    },
    async describe() {
      return { device: llama.gpu === false ? 'cpu' : llama.gpu, threads: options.threads }
    },
    async close() {
      await llama.dispose()
    },
  }
}
