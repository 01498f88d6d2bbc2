import type { Dialect } from './dialect.ts'
import { openaiEmbeddings, plainRanking, readScores } from './openai.ts'
import { asList, asRecord } from './reading.ts'

/**
 * infinity counts characters unless it was started with lengths_via_tokenize, and an answer does not say which. So its
 * counts are not read, and Weir estimates the tokens.
 */
export const infinity: Dialect = {
  embeddings: {
    ...openaiEmbeddings,
    response(body, headers) {
      const output = openaiEmbeddings.response(body, headers)
      return output && { ...output, inputTokens: undefined }
    },
  },
  ranking: {
    ...plainRanking('probability'),
    response(body) {
      // Older versions call the results data.
      const { results, data } = asRecord(body)
      return readScores(asList(results ?? data), 'relevance_score', undefined)
    },
  },
}
