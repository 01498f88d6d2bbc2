import type { Dialect } from './dialect.ts'
import { generation, includeUsage, openaiEmbeddings, openaiImages, openaiSpeech, plainRanking } from './openai.ts'

/** LiteLLM's proxy, which passes requests on to other providers. */
export const litellm: Dialect = {
  chat: generation('/chat/completions', includeUsage),
  completions: generation('/completions', includeUsage),
  embeddings: openaiEmbeddings,
  ranking: plainRanking('probability'),
  images: openaiImages,
  speech: openaiSpeech,
}
