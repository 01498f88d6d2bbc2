import type { Dialect } from './dialect.ts'
import { generation, includeUsage, openaiEmbeddings } from './openai.ts'

/** It ignores `n`, and ends a stream that is too long without an error. */
const quirks = { oneChoicePerCall: true, hidesRefusalsOfStreams: true } as const

/** The server of llama-cpp-python. Its streams have no usage, so they are billed by their chunks. */
export const llamacppPython: Dialect = {
  chat: { ...generation('/chat/completions', includeUsage), ...quirks },
  completions: { ...generation('/completions', includeUsage), ...quirks },
  // It does not know encoding_format and always answers with numbers.
  embeddings: openaiEmbeddings,
}
