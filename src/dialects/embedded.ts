import type { Dialect } from './dialect.ts'
import { nim } from './nim.ts'
import { openai } from './openai.ts'

/** Weir's own engine host: OpenAI's wording, and for ranking the logits that both schemas can be made of. */
export const embedded: Dialect = { ...openai, ...(nim.ranking ? { ranking: nim.ranking } : {}) }
