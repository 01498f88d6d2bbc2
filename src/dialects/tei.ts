import type { AnswerHeaders } from '../core/job.ts'
import type { Dialect } from './dialect.ts'
import { readScores } from './openai.ts'
import { asList, tokenCount } from './reading.ts'

/** Its --max-client-batch-size, unless it is told otherwise: for texts to embed and to rank alike. */
const BATCH_SIZE = 32

/** Hugging Face's text-embeddings-inference, by its own paths at the root. */
export const tei: Dialect = {
  embeddings: {
    batchSize: BATCH_SIZE,
    request: ({ texts, dimensions }) => ({
      path: '//embed',
      // Left alone, newer servers cut what is too long and say nothing.
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

/** It counts in a header and not in the body. */
function computedTokens(headers: AnswerHeaders): number | undefined {
  const text = headers['x-compute-tokens']
  return typeof text === 'string' && /^\d+$/.test(text) ? tokenCount(Number(text)) : undefined
}
