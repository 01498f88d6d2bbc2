import { getLlama, LlamaLogLevel } from 'node-llama-cpp'
import type { Llama, LlamaModel } from 'node-llama-cpp'
import type { EngineModel, Sampling } from '../engine-model.ts'
import type { EngineRuntime, RuntimeOptions } from '../engine-runtime.ts'
import type { Loader } from '../manifest-types.ts'
import { loadChatModel } from './chat-model.ts'
import { loadEmbeddingModel } from './embedding-model.ts'
import { loadRankingModel } from './ranking-model.ts'
import { processorTime, threadPace, type ThreadPace } from './thread-pace.ts'

export interface LlamaLoading {
  llama: Llama
  model: LlamaModel
  options: RuntimeOptions
  contextTokens: number
  /** What stands in for sampling parameters the caller leaves open. */
  sampling: Partial<Sampling>
  pace: ThreadPace
}

const loaders: Partial<Record<Loader, (loading: LlamaLoading) => Promise<EngineModel>>> = {
  'gguf-chat': loadChatModel,
  'gguf-embedding': loadEmbeddingModel,
  'gguf-reranker': loadRankingModel,
}

/** llama.cpp. The GPU is used when its package is installed and a device answers; nothing is ever compiled or fetched. */
export async function llamaRuntime(options: RuntimeOptions): Promise<EngineRuntime> {
  const llama = await getLlama({
    gpu: 'auto',
    build: 'never',
    skipDownload: true,
    progressLogs: false,
    maxThreads: options.threads,
    logLevel: LlamaLogLevel.error,
    logger: (level, message) => process.stderr.write(`llama.cpp ${level}: ${message}\n`),
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
    async load({ catalog, loader: name, settings }, path) {
      const loader = loaders[name]
      if (!loader) throw new Error(`The llama runtime cannot load '${name}' models.`)
      const model = await llama.loadModel({ modelPath: path('model') })
      const contextTokens = Math.min(catalog.context_length, model.trainContextSize)
      return loader({ llama, model, options, contextTokens, sampling: settings?.sampling ?? {}, pace })
    },
    async describe() {
      return { device: llama.gpu === false ? 'cpu' : llama.gpu, threads: options.threads }
    },
    async close() {
      await llama.dispose()
    },
  }
}
