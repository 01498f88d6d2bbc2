import type { Dialect, SpeechDialect } from './dialect.ts'
import { cohereRanking, generation, openaiEmbeddings, openaiSpeech, runningUsage } from './openai.ts'

/** As OpenAI has it, but a translation may be told which language it comes from. */
const vllmSpeech: SpeechDialect = {
  ...openaiSpeech,
  request(input) {
    const { path, fields } = openaiSpeech.request(input)
    return { path, fields: input.language === undefined ? fields : { ...fields, language: input.language } }
  },
}

export const vllm: Dialect = {
  chat: generation('/chat/completions', runningUsage),
  completions: generation('/completions', runningUsage),
  embeddings: openaiEmbeddings,
  // Cross-encoders answer with their activation applied.
  ranking: cohereRanking('/rerank', 'probability'),
  speech: vllmSpeech,
}
