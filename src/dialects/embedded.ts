import type { Dialect } from './dialect.ts'
import { nimRanking } from './nim.ts'
import { cohereRanking, openai } from './openai.ts'

/**
 * Weir's own engine host: OpenAI's wording, and for ranking the logits that both schemas can be made of. Only
 * its other schema has a limit for a document, and probabilities.
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
