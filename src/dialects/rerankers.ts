import type { Dialect, EmbeddingsDialect, RankingDialect } from './dialect.ts'
import { cohereRanking, openaiEmbeddings, plainRanking } from './openai.ts'

/** Cohere's own API: https://…/v2 as the address. */
export const cohere: Dialect = { ranking: cohereRanking }

/** Jina's own API says `embedding_type`, and sends the documents back unless told not to. */
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
