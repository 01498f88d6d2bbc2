import { contextLengthExceeded } from '../runtime/context-length.ts'
import type { EngineModel } from '../runtime/engine-model.ts'
import type { LlamaLoading } from './model-loading.ts'

export async function loadEmbeddingModel(loading: LlamaLoading): Promise<EngineModel> {
  const { model, options, contextTokens, ignoreMemorySafetyChecks } = loading
  const { threads } = options
  // The library needs room for one token more than it evaluates.
  const contextSize = contextTokens + 1
  const context = await model.createEmbeddingContext({ contextSize, threads, ignoreMemorySafetyChecks })
  return {
    memoryBytes: model.size,
    async embed({ texts, dimensions }, signal) {
      const vectors: Float32Array[] = []
      let promptTokens = 0
      for (const text of texts) {
        signal.throwIfAborted()
        const length = context.calculateInputLength(text)
        if (length > contextTokens) throw contextLengthExceeded(contextTokens, length)
        promptTokens += length
        const { vector } = await context.getEmbeddingFor(text)
        vectors.push(unitVector(vector.slice(0, dimensions)))
      }
      return { vectors, promptTokens }
    },
    async close() {
      await context.dispose()
      await model.dispose()
    },
  }
}

/** Shortened vectors (Matryoshka) are compared by cosine too, so they need unit length again. */
function unitVector(vector: readonly number[]): Float32Array {
  const length = Math.hypot(...vector) || 1
  return Float32Array.from(vector, (value) => value / length)
}
