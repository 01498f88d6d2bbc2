import type { Dialect } from './dialect.ts'
import { nimRanking } from './nim.ts'
import { cohereRanking, openai } from './openai.ts'

/**
 * Weir's own engine host, which speaks OpenAI's dialect. Ranking uses NVIDIA's schema, because logits can be
 * converted to both scales. Only Cohere's schema can limit the tokens of a document, and it returns
 * probabilities.
 */
export const embedded: Dialect = {
  ...openai,
  ranking: {
    ...nimRanking,
    cutsDocuments: true,
    request: (input) => (input.maxTokensPerDocument === undefined ? nimRanking : cohereRanking).request(input),
    response(body, headers) {
      const output = cohereRanking.response(body, headers)
      return output ? { ...output, scale: 'probability' } : nimRanking.response(body, headers)
    },
  },
}
