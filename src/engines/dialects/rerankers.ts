import type { Dialect, EmbeddingsDialect, RankingDialect } from './dialect.ts'
import { cohereRanking, openaiEmbeddings, plainRanking } from './openai.ts'

/** Cohere's own API, with https://…/v2 as the address. */
export const cohere: Dialect = { ranking: cohereRanking }

/** Jina's own API uses `embedding_type`, and returns the documents unless asked not to. */
const jinaEmbeddings: EmbeddingsDialect = {
  ...openaiEmbeddings,
  request: ({ model, texts, dimensions, base64 }) => ({
    path: '/embeddings',
    body: {
      model,
      input: texts,
      embedding_type: base64 ? 'base64' : 'float',
      ...(dimensions === undefined ? {} : { dimensions }),
    },
  }),
}

const jinaRanking: RankingDialect = {
  ...plainRanking('probability'),
  request: ({ model, query, documents }) => ({
    path: '/rerank',
    body: { model, query, documents, return_documents: false },
  }),
}

export const jina: Dialect = { embeddings: jinaEmbeddings, ranking: jinaRanking }
