import { getLlama, LlamaLogLevel } from 'node-llama-cpp'
import type { Loader } from '../../contract.ts'
import type { EngineModel } from '../runtime/engine-model.ts'
import type { EngineRuntime, RuntimeOptions } from '../runtime/engine-runtime.ts'
import { loadChatModel } from './chat-model.ts'
import { loadEmbeddingModel } from './embedding-model.ts'
import { inGpuRoom, type GpuShare } from './gpu-room.ts'
import type { LlamaLoading } from './model-loading.ts'
import { loadRankingModel } from './ranking-model.ts'
import { processorTime, threadPace } from './thread-pace.ts'

const loaders: Readonly<Partial<Record<Loader, (loading: LlamaLoading) => Promise<EngineModel>>>> = {
  'gguf-chat': loadChatModel,
  'gguf-embedding': loadEmbeddingModel,
  'gguf-reranker': loadRankingModel,
}

/** llama.cpp. Uses the GPU if its package is installed and a device answers. Never compiles or fetches anything. */
export async function llamaRuntime(options: RuntimeOptions): Promise<EngineRuntime> {
  const llama = await getLlama({
    // Left out, NODE_LLAMA_CPP_GPU decides, or else what the library finds.
    ...(options.gpu ? {} : { gpu: false }),
    build: 'never',
    skipDownload: true,
    progressLogs: false,
    maxThreads: options.threads,
    logLevel: LlamaLogLevel.error,
    logger: (level, message) => options.log(`llama.cpp ${level}: ${message}`),
  })
  const pace = threadPace({
    // With a GPU the threads mostly wait for it, so how busy they are says nothing.
    threads: llama.gpu === false ? options.threads : 1,
    set(threads) {
      llama.maxThreads = threads
    },
    read: processorTime,
  })
  return {
    name: 'llama',
    async load({ catalog, loader: name, settings }, path) {
      const loader = loaders[name]
      if (!loader) throw new Error(`the llama runtime cannot load '${name}' models`)
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
        options.log(`the GPU has no room for ${catalog.id}; it runs on the CPU`),
      )
    },
    async describe() {
      return { device: llama.gpu === false ? 'cpu' : llama.gpu, threads: options.threads }
    },
    close: () => llama.dispose(),
  }
}
