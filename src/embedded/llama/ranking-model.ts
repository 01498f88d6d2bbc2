import { contextLengthExceeded } from '../engine-model.ts'
import type { EngineModel } from '../engine-model.ts'
import type { LlamaLoading } from './runtime.ts'

export async function loadRankingModel(loading: LlamaLoading): Promise<EngineModel> {
  const { model, options, contextTokens, ignoreMemorySafetyChecks } = loading
  const { threads } = options
  const context = await model.createRankingContext({ contextSize: contextTokens, threads, ignoreMemorySafetyChecks })
  return {
    memoryBytes: model.size,
    async score({ query, documents, maxTokensPerDocument, truncate }, signal) {
      const logits: number[] = []
      let promptTokens = 0
      for (const document of documents) {
        signal.throwIfAborted()
        const tokens = model.tokenize(document).slice(0, maxTokensPerDocument)
        const length = context.calculateInputLength(query, tokens)
        if (length > contextTokens && !truncate) throw contextLengthExceeded(contextTokens, length)
        const fitting = tokens.slice(0, Math.max(1, tokens.length - Math.max(0, length - contextTokens)))
        promptTokens += Math.min(length, contextTokens)
        const probability = await context.rank(query, fitting)
        logits.push(Math.log(probability / (1 - probability)))
      }
      return { logits, promptTokens }
    },
    async close() {
      await context.dispose()
      await model.dispose()
    },
  }
}
