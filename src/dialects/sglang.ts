import type { Dialect } from './dialect.ts'
import { generation, openaiEmbeddings, readScores, runningUsage } from './openai.ts'
import { list } from './reading.ts'

export const sglang: Dialect = {
  chat: generation('/chat/completions', runningUsage),
  completions: generation('/completions', runningUsage),
  embeddings: openaiEmbeddings,
  // A bare list, with the score's own name.
  ranking: {
    scale: 'probability',
    request: ({ model, query, documents }) => ({ path: '/rerank', body: { model, query, documents } }),
    response: (body) => readScores(list(body), 'score', undefined),
  },
}
