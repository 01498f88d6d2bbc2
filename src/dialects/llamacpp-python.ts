import type { Dialect } from './dialect.ts'
import { generation, includeUsage, openaiEmbeddings } from './openai.ts'

/** The server of llama-cpp-python. Its streams have no usage, so they are billed by their pieces. It ignores `n`. */
export const llamacppPython: Dialect = {
  chat: { ...generation('/chat/completions', includeUsage), oneChoicePerCall: true },
  completions: { ...generation('/completions', includeUsage), oneChoicePerCall: true },
  // It knows no encoding_format and always answers with numbers.
  embeddings: openaiEmbeddings,
}
