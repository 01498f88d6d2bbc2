import type { Dialect, RankingDialect, SpeechDialect } from './dialect.ts'
import { cohereRanking, generation, openaiEmbeddings, openaiSpeech, readScores, runningUsage } from './openai.ts'
import { inputTokensOf, list, record } from './reading.ts'

/** As OpenAI has it, but a translation may be told which language it comes from. */
const vllmSpeech: SpeechDialect = {
  ...openaiSpeech,
  request(input) {
    const { path, fields } = openaiSpeech.request(input)
    return { path, fields: input.language === undefined ? fields : { ...fields, language: input.language } }
  },
}

const rerank = cohereRanking('/rerank', 'probability')

/** Cross-encoders answer with their activation applied. Servers from before /rerank score the same pairs by /score. */
const vllmRanking: RankingDialect = {
  ...rerank,
  instead: ({ model, query, documents }, refusal) =>
    /status 40[45]/.test(refusal) ? { path: '/score', body: { model, text_1: query, text_2: documents } } : undefined,
  response: (body, headers) =>
    rerank.response(body, headers) ?? readScores(list(record(body)['data']), 'score', inputTokensOf(body)),
}

export const vllm: Dialect = {
  chat: generation('/chat/completions', runningUsage),
  completions: generation('/completions', runningUsage),
  embeddings: openaiEmbeddings,
  ranking: vllmRanking,
  speech: vllmSpeech,
}
