import type { Dialect } from './dialect.ts'
import { cohereRanking, generation, openaiEmbeddings, openaiSpeech, runningUsage } from './openai.ts'

export const vllm: Dialect = {
  chat: generation('/chat/completions', runningUsage),
  completions: generation('/completions', runningUsage),
  embeddings: openaiEmbeddings,
  // Cross-encoders answer with their activation applied.
  ranking: cohereRanking('/rerank', 'probability'),
  speech: openaiSpeech,
}
