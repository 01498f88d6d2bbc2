import type { GenerationDialect } from '../../engines/dialects/dialect.ts'
import type { OutputLimit } from './generation-limit.ts'

/** What the answer to a chat or a text completion depends on, besides the engine. */
export interface GenerationOptions {
  readonly limit: OutputLimit
  /** Ends a stream with the usage. */
  readonly includeUsage: boolean
  /** 1 by default. */
  readonly prompts?: number
  readonly oneChoicePerCall?: GenerationDialect['oneChoicePerCall'] | undefined
  /** The index of the first choice in the answer; 0 by default. */
  readonly firstIndex?: number
  readonly usageOf?: GenerationDialect['usageOf'] | undefined
}
