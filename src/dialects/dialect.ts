import type { AnswerHeaders } from '../core/job.ts'

/**
 * How one kind of server words what all of them do: paths, requests, answers, usage. Everything here is
 * pure; nothing outside the dialects asks what kind an engine is. An operation that a server does not
 * offer is missing.
 */
export interface Dialect {
  readonly chat?: GenerationDialect
  readonly completions?: GenerationDialect
  readonly embeddings?: EmbeddingsDialect
  readonly ranking?: RankingDialect
  readonly images?: ImagesDialect
  readonly speech?: SpeechDialect
}

/** Text generation is OpenAI's format everywhere; a body is passed on nearly as it came. */
export interface GenerationDialect {
  readonly path: string
  /** What makes the server report usage in a stream. */
  readonly streamOptions: Readonly<Record<string, unknown>>
  /** Cached input tokens, where the server reports them outside `usage`. */
  readonly cachedTokens?: (answer: Readonly<Record<string, unknown>>) => number | undefined
}

/** A JSON request below the engine's base address (from its root with two slashes). */
export interface DialectRequest {
  readonly path: string
  readonly body: object
}

export interface EmbeddingsInput {
  readonly model: string
  readonly texts: readonly string[]
  readonly dimensions: number | undefined
  /** Little-endian float32 in base64 instead of numbers, where the server knows it. */
  readonly base64: boolean
}

export interface EmbeddingsOutput {
  /** In the order of the input: numbers, or base64 as they came. */
  readonly vectors: readonly (readonly number[] | string)[]
  readonly inputTokens: number | undefined
}

export interface EmbeddingsDialect {
  /** The most texts a call may have. */
  readonly batchSize: number
  request(input: EmbeddingsInput): DialectRequest
  response(body: unknown, headers: AnswerHeaders): EmbeddingsOutput | undefined
}

export interface RankingInput {
  readonly model: string
  readonly query: string
  readonly documents: readonly string[]
  /** Cut what is too long instead of refusing it. */
  readonly truncate: boolean
  readonly maxTokensPerDocument: number | undefined
}

/** What scores are: probabilities from 0 to 1, or the logits before. */
export type ScoreScale = 'probability' | 'logit'

export interface RankingOutput {
  readonly scores: readonly { readonly index: number; readonly score: number }[]
  readonly inputTokens: number | undefined
  /** Where the answer itself tells. */
  readonly scale?: ScoreScale
}

export interface RankingDialect {
  /** What its scores usually are. */
  readonly scale: ScoreScale
  /** It cuts documents to `maxTokensPerDocument` itself; for the others Weir does. */
  readonly cutsDocuments?: true
  /** The most documents a call may have. */
  readonly batchSize: number
  request(input: RankingInput): DialectRequest
  /** What to ask a server that refused the request in these words, if anything. */
  instead?(input: RankingInput, refusal: string): DialectRequest | undefined
  response(body: unknown, headers: AnswerHeaders): RankingOutput | undefined
}

export interface ImagesInput {
  readonly model: string
  readonly prompt: string
  readonly count: number
  readonly size: string | undefined
  /** The model's other parameters (quality, seed, steps …), checked, by their wire names. */
  readonly parameters: Readonly<Record<string, unknown>>
}

export interface ImagesOutput {
  readonly images: readonly { readonly base64: string; readonly revisedPrompt?: string }[]
}

export interface ImagesDialect {
  /** The most images one call may ask for. */
  readonly batchSize: number
  request(input: ImagesInput): DialectRequest
  response(body: unknown): ImagesOutput | undefined
}

export interface SpeechInput {
  readonly model: string
  readonly task: 'transcribe' | 'translate'
  /** The spoken language, as an ISO-639-1 code. */
  readonly language: string | undefined
  readonly prompt: string | undefined
  readonly temperature: number | undefined
  readonly words: boolean
  /** Only the text, for a server that knows nothing of segments. */
  readonly textOnly: boolean
}

export interface SpeechOutput {
  readonly text: string
  /** As the server names it: a code or a name. */
  readonly language: string | undefined
  readonly segments: readonly Readonly<Record<string, unknown>>[] | undefined
  readonly words: readonly Readonly<Record<string, unknown>>[] | undefined
}

/** The upload itself travels as the form's `file`; a dialect names the fields beside it. */
export interface SpeechDialect {
  request(input: SpeechInput): {
    readonly path: string
    readonly fields: Readonly<Record<string, string | readonly string[]>>
  }
  /** It knows no translation. */
  readonly transcribesOnly?: true
  /** Whether a refusal in these words means that the server gives text and nothing else. */
  refusesSegments(refusal: string): boolean
  response(body: unknown): SpeechOutput | undefined
  /** Whether the answer, though its status is that of success, says that the recording cannot be read. */
  isUnreadable?(body: unknown): boolean
}
