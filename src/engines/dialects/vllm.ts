import type { Dialect, RankingDialect, SpeechDialect } from './dialect.ts'
import { cohereRanking, generation, openaiEmbeddings, openaiSpeech, readScores, runningUsage } from './openai.ts'
import { inputTokensOf, asList, asRecord } from './reading.ts'

/** Like OpenAI's, but a translation may name the spoken language too. */
const vllmSpeech: SpeechDialect = {
  ...openaiSpeech,
  request(input) {
    const { path, fields } = openaiSpeech.request(input)
    return { path, fields: input.language === undefined ? fields : { ...fields, language: input.language } }
  },
}

/**
 * Cross-encoders apply their activation, so scores are probabilities. Documents that are too long are refused
 * unless the request asks for truncation, which only newer servers support. Servers without /rerank offer
 * /score for the same pairs.
 */
const vllmRanking: RankingDialect = {
  ...cohereRanking,
  fallback(input, refusal) {
    const { path, body } = cohereRanking.request(input)
    if (input.truncate && /maximum context length/.test(refusal)) {
      return { path, body: { ...body, truncate_prompt_tokens: -1 } }
    }
    if (!/status 40[45]/.test(refusal)) return undefined
    const { query, documents, ...rest } = body as { query: string; documents: readonly string[] }
    return { path: '/score', body: { ...rest, text_1: query, text_2: documents } }
  },
  response: (body, headers) =>
    cohereRanking.response(body, headers) ?? readScores(asList(asRecord(body)['data']), 'score', inputTokensOf(body)),
}

export const vllm: Dialect = {
  chat: generation('/chat/completions', runningUsage),
  completions: generation('/completions', runningUsage),
  embeddings: openaiEmbeddings,
  ranking: vllmRanking,
  speech: vllmSpeech,
}
