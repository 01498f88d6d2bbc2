import type { Dialect } from './dialect.ts'
import { ALL_DOCUMENTS, generation, openaiEmbeddings, readScores, runningUsage } from './openai.ts'
import { asList, asRecord, tokenCount } from './reading.ts'

export const sglang: Dialect = {
  chat: generation('/chat/completions', runningUsage),
  completions: generation('/completions', runningUsage),
  embeddings: openaiEmbeddings,
  // The answer is a bare list. A cross-encoder reports the tokens of each pair, and its scores are logits. A
  // decoder that answers yes or no reports no tokens, and its scores are the probability of yes.
  ranking: {
    scale: 'probability',
    batchSize: ALL_DOCUMENTS,
    request: ({ model, query, documents }) => ({
      path: '/rerank',
      body: { model, query, documents, return_documents: false },
    }),
    response(body) {
      const output = readScores(asList(body), 'score', tokensOfPairs(asList(body) ?? []))
      return output && { ...output, scale: output.inputTokens === undefined ? 'probability' : 'logit' }
    },
  },
}

/** undefined unless every pair has a count. */
function tokensOfPairs(pairs: readonly unknown[]): number | undefined {
  let sum = 0
  for (const pair of pairs) {
    const count = tokenCount(asRecord(asRecord(pair)['meta_info'])['prompt_tokens'])
    if (count === undefined) return undefined
    sum += count
  }
  return sum
}
