import type { Dialect, GenerationDialect } from './dialect.ts'
import { generation, includeUsage, openaiEmbeddings, plainRanking } from './openai.ts'
import { asRecord, tokenCount, type JsonRecord } from './reading.ts'

/** `timings_per_token`: adds timings, and so the counts so far, to every event of a stream. */
const runningTimings = { ...includeUsage, timings_per_token: true }

/**
 * llama.cpp's server has `usage` at the end, and `timings` in every event. Some versions report the tokens from the
 * prompt cache only there.
 */
function usageOf(answer: JsonRecord): unknown {
  const { usage, timings } = answer
  if (!timings) return usage
  const { cache_n, prompt_n, predicted_n } = asRecord(timings)
  const cached = tokenCount(cache_n)
  const details = { prompt_tokens_details: { cached_tokens: cached ?? 0 } }
  if (usage) return { ...details, ...asRecord(usage) }
  const processed = tokenCount(prompt_n)
  // Older versions do not report how much of the prompt came from the cache, so the input is unknown.
  if (cached === undefined || processed === undefined) return undefined
  return { ...details, prompt_tokens: cached + processed, completion_tokens: predicted_n }
}

/** Older versions refuse `n`, and newer ones count only the first choice of a whole answer. */
function llamacppGeneration(path: string): GenerationDialect {
  return { ...generation(path, runningTimings), usageOf, oneChoicePerCall: true }
}

export const llamacpp: Dialect = {
  chat: llamacppGeneration('/chat/completions'),
  completions: llamacppGeneration('/completions'),
  embeddings: openaiEmbeddings,
  ranking: plainRanking('logit'),
}
