import type { Dialect, RankingDialect, SpeechDialect } from './dialect.ts'
import { cohereRanking, generation, openaiEmbeddings, openaiSpeech, readScores, runningUsage } from './openai.ts'
import { inputTokensOf, asList, asRecord } from './reading.ts'

/** As OpenAI has it, but a translation may be told which language it comes from. */
const vllmSpeech: SpeechDialect = {
  ...openaiSpeech,
  request(input) {
    const { path, fields } = openaiSpeech.request(input)
    return { path, fields: input.language === undefined ? fields : { ...fields, language: input.language } }
  },
}

/**
 * Cross-encoders answer with their activation applied. What is too long is refused unless it is told to cut; only
 * newer servers know how to cut to what fits. Servers from before /rerank score the same pairs by /score.
 */
const vllmRanking: RankingDialect = {
  ...cohereRanking,
  instead(input, refusal) {
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
