import type { Dialect } from './dialect.ts'
import { generation, includeUsage, openaiEmbeddings } from './openai.ts'

/** It ignores `n`, and ends a stream that is too long without a word. */
const quirks = { oneChoicePerCall: true, hidesRefusalsOfStreams: true } as const

/** The server of llama-cpp-python. Its streams have no usage, so they are billed by their pieces. */
export const llamacppPython: Dialect = {
  chat: { ...generation('/chat/completions', includeUsage), ...quirks },
  completions: { ...generation('/completions', includeUsage), ...quirks },
  // It knows no encoding_format and always answers with numbers.
  embeddings: openaiEmbeddings,
}
