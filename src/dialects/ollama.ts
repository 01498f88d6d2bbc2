import type { Dialect } from './dialect.ts'
import { generation, includeUsage, openaiEmbeddings } from './openai.ts'

export const ollama: Dialect = {
  chat: generation('/chat/completions', includeUsage),
  completions: generation('/completions', includeUsage),
  embeddings: openaiEmbeddings,
}
