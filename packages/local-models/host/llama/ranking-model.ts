import { contextLengthExceeded } from '../runtime/context-length.ts'
import type { EngineModel } from '../runtime/engine-model.ts'
import type { LlamaLoading } from './model-loading.ts'

export async function loadRankingModel(loading: LlamaLoading): Promise<EngineModel> {
  const { model, options, contextTokens, ignoreMemorySafetyChecks } = loading
  const { threads } = options
  // The library needs room for one token more than it evaluates.
  const contextSize = contextTokens + 1
  const context = await model.createRankingContext({ contextSize, threads, ignoreMemorySafetyChecks })
  return {
    memoryBytes: model.size,
    async score({ query, documents, maxTokensPerDocument, truncate }, signal) {
      const logits: number[] = []
      let promptTokens = 0
      for (const document of documents) {
        signal.throwIfAborted()
        const tokens = model.tokenize(document).slice(0, maxTokensPerDocument)
        const length = context.calculateInputLength(query, tokens)
        const room = contextTokens - (length - tokens.length)
        if (room < Math.min(1, tokens.length) || (length > contextTokens && !truncate)) {
          throw contextLengthExceeded(contextTokens, length)
        }
        promptTokens += Math.min(length, contextTokens)
        logits.push(logitOf(await context.rank(query, tokens.slice(0, room))))
      }
      return { logits, promptTokens }
    },
    async close() {
      await context.dispose()
      await model.dispose()
    },
  }
}

/**
 * The library squeezes the model's logit into a probability. Logits beyond ±36 come out as exactly 0 or 1, whose logit
 * would be infinite and cannot be written as JSON.
 */
function logitOf(probability: number): number {
  const within = Math.min(1 - Number.EPSILON / 2, Math.max(Number.EPSILON / 2, probability))
  return Math.log(within / (1 - within))
}
