import type { Dialect, GenerationDialect } from './dialect.ts'
import { generation, includeUsage, openaiEmbeddings, plainRanking } from './openai.ts'
import { asRecord, wholeNumber } from './reading.ts'

/**
 * llama.cpp's server reports the tokens from its prompt cache in `timings`, not in `usage`. Older versions refuse `n`, and
 * newer ones count only the first choice.
 */
function withTimings(dialect: GenerationDialect): GenerationDialect {
  return {
    ...dialect,
    oneChoicePerCall: true,
    cachedTokens: (answer) => wholeNumber(asRecord(answer['timings'])['cache_n']),
  }
}

export const llamacpp: Dialect = {
  chat: withTimings(generation('/chat/completions', includeUsage)),
  completions: withTimings(generation('/completions', includeUsage)),
  embeddings: openaiEmbeddings,
  ranking: plainRanking('logit'),
}
