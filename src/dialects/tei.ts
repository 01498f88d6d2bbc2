import type { Dialect } from './dialect.ts'
import { readScores } from './openai.ts'
import { list } from './reading.ts'

/** Hugging Face's text-embeddings-inference, by its own paths at the root; it reports no usage. */
export const tei: Dialect = {
  embeddings: {
    batchSize: 32,
    request: ({ texts, dimensions }) => ({
      path: '//embed',
      body: { inputs: texts, normalize: true, ...(dimensions === undefined ? {} : { dimensions }) },
    }),
    response(body) {
      const vectors = list(body)
      if (!vectors?.every((vector) => Array.isArray(vector))) return undefined
      return { vectors, inputTokens: undefined }
    },
  },
  ranking: {
    scale: 'logit',
    request: ({ query, documents, truncate }) => ({
      path: '//rerank',
      body: { query, texts: documents, raw_scores: true, truncate },
    }),
    response: (body) => readScores(list(body), 'score', undefined),
  },
}
