import { contextLengthExceeded } from '../runtime/engine-model.ts'
import type { EngineModel } from '../runtime/engine-model.ts'
import type { LlamaLoading } from './model-loading.ts'

export async function loadRankingModel(loading: LlamaLoading): Promise<EngineModel> {
  const { model, options, contextTokens, ignoreMemorySafetyChecks } = loading
  const { threads } = options
  // The library wants room for one token more than it evaluates.
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
        const fitting = tokens.slice(0, room)
        promptTokens += Math.min(length, contextTokens)
        logits.push(logitOf(await context.rank(query, fitting)))
      }
      return { logits, promptTokens }
    },
    async close() {
      await context.dispose()
      await model.dispose()
    },
  }
}

/** The library gives what the model said squeezed into 0–1; beyond ±36 that is the end itself, whose logit no JSON holds. */
function logitOf(probability: number): number {
  const within = Math.min(1 - Number.EPSILON / 2, Math.max(Number.EPSILON / 2, probability))
  return Math.log(within / (1 - within))
}
