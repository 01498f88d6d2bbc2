import type { Dialect } from './dialect.ts'
import { openaiEmbeddings, plainRanking, readScores } from './openai.ts'
import { asList, asRecord, inputTokensOf } from './reading.ts'

export const infinity: Dialect = {
  embeddings: openaiEmbeddings,
  ranking: {
    ...plainRanking('probability'),
    response(body) {
      // Older versions name the results `data`.
      const { results, data } = asRecord(body)
      return readScores(asList(results ?? data), 'relevance_score', inputTokensOf(body))
    },
  },
}
