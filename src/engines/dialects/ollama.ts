import type { Dialect } from './dialect.ts'
import { generation, includeUsage, openaiEmbeddings } from './openai.ts'

/** It ignores `n`, and does not support a list of prompts. */
export const ollama: Dialect = {
  chat: { ...generation('/chat/completions', includeUsage), oneChoicePerCall: true },
  completions: { ...generation('/completions', includeUsage), oneChoicePerCall: true },
  embeddings: openaiEmbeddings,
}
