import type { EngineHeaders } from '../job.ts'
import type { Dialect } from './dialect.ts'
import { readScores } from './openai.ts'
import { asList, tokenCount } from './reading.ts'

/** The default of its --max-client-batch-size, for embedding and ranking alike. */
const BATCH_SIZE = 32

/** Hugging Face's text-embeddings-inference, whose own paths are at the root. */
export const tei: Dialect = {
  embeddings: {
    batchSize: BATCH_SIZE,
    request: ({ texts, dimensions }) => ({
      path: '//embed',
      // By default, newer servers silently truncate texts that are too long.
      body: { inputs: texts, normalize: true, truncate: false, ...(dimensions === undefined ? {} : { dimensions }) },
    }),
    response(body, headers) {
      const vectors = asList(body)
      if (!vectors?.every((vector) => Array.isArray(vector))) return undefined
      return { vectors, inputTokens: computedTokens(headers) }
    },
  },
  ranking: {
    scale: 'logit',
    batchSize: BATCH_SIZE,
    request: ({ query, documents, truncate }) => ({
      path: '//rerank',
      body: { query, texts: documents, raw_scores: true, truncate },
    }),
    response: (body, headers) => readScores(asList(body), 'score', computedTokens(headers)),
  },
}

/** The token count is in a header, not in the body. */
function computedTokens(headers: EngineHeaders): number | undefined {
  const text = headers['x-compute-tokens']
  return typeof text === 'string' && /^\d+$/.test(text) ? tokenCount(Number(text)) : undefined
}
