import type { Dialect } from './dialect.ts'
import { cohereRanking, openaiEmbeddings } from './openai.ts'

/** Cohere's own API: https://…/v2 as the address. */
export const cohere: Dialect = { ranking: cohereRanking('/rerank', 'probability') }

export const jina: Dialect = { embeddings: openaiEmbeddings, ranking: cohereRanking('/rerank', 'probability') }
