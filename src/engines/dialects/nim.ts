import type { Dialect, RankingDialect } from './dialect.ts'
import { generation, includeUsage, openaiEmbeddings, readScores } from './openai.ts'
import { inputTokensOf, asList, asRecord } from './reading.ts'

/** NVIDIA's ranking schema. */
export const nimRanking: RankingDialect = {
  scale: 'logit',
  batchSize: 512,
  request: ({ model, query, documents, truncate }) => ({
    path: '/ranking',
    body: {
      model,
      query: { text: query },
      passages: documents.map((text) => ({ text })),
      truncate: truncate ? 'END' : 'NONE',
    },
  }),
  response: (body) => readScores(asList(asRecord(body)['rankings']), 'logit', inputTokensOf(body)),
}

/** NVIDIA's NIM containers. */
export const nim: Dialect = {
  chat: generation('/chat/completions', includeUsage),
  completions: generation('/completions', includeUsage),
  embeddings: {
    ...openaiEmbeddings,
    // Its retrieval models need to know whether a text is a query or a passage. Passages are the usual case.
    request(input) {
      const { path, body } = openaiEmbeddings.request(input)
      return { path, body: { ...body, input_type: 'passage', truncate: 'NONE' } }
    },
  },
  ranking: nimRanking,
}
