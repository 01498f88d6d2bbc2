import type { EngineHeaders } from '../job.ts'

/**
 * The protocol of one kind of inference server: paths, requests, answers, usage. Dialects are pure, and nothing else
 * depends on the kind of an engine. An operation that the server does not offer is missing.
 */
export interface Dialect {
  readonly chat?: GenerationDialect
  readonly completions?: GenerationDialect
  readonly embeddings?: EmbeddingsDialect
  readonly ranking?: RankingDialect
  readonly images?: ImagesDialect
  readonly speech?: SpeechDialect
}

/** Every server uses OpenAI's format for text generation, so a body is forwarded almost unchanged. */
export interface GenerationDialect {
  readonly path: string
  /** The fields that make the server report usage in a stream. */
  readonly streamFields: Readonly<Record<string, unknown>>
  /**
   * The server ends a stream that it should refuse, without an error. Without a stream, it refuses the same request.
   */
  readonly hidesRefusalsOfStreams?: true
  /**
   * The server answers each call with one choice for one prompt, even if the request asked for more. Weir makes several
   * calls.
   */
  readonly oneChoicePerCall?: true
  /** Reads the usage of an answer or an event, in OpenAI's format, if the server reports it outside `usage`. */
  readonly usageOf?: (answer: Readonly<Record<string, unknown>>) => unknown
}

export interface DialectRequest {
  /** Relative to the engine's base address, or to its root when it starts with two slashes. */
  readonly path: string
  readonly body: object
}

interface EmbeddingsInput {
  readonly model: string
  readonly texts: readonly string[]
  readonly dimensions: number | undefined
  /** Ask for little-endian float32 in base64 instead of numbers, if the server supports it. */
  readonly base64: boolean
}

interface EmbeddingsOutput {
  /** In the order of the input: numbers, or base64 if the server sent it. */
  readonly vectors: readonly (readonly number[] | string)[]
  readonly inputTokens: number | undefined
}

export interface EmbeddingsDialect {
  /** The most texts in one call. */
  readonly batchSize: number
  request(input: EmbeddingsInput): DialectRequest
  response(body: unknown, headers: EngineHeaders): EmbeddingsOutput | undefined
}

export interface RankingInput {
  readonly model: string
  readonly query: string
  readonly documents: readonly string[]
  /** Truncate documents that are too long instead of refusing them. */
  readonly truncate: boolean
  readonly maxTokensPerDocument: number | undefined
}

/** Probabilities from 0 to 1, or the logits before the sigmoid. */
export type ScoreScale = 'probability' | 'logit'

export interface RankingOutput {
  readonly scores: readonly { readonly index: number; readonly score: number }[]
  readonly inputTokens: number | undefined
  /** Set when the answer itself shows the scale. */
  readonly scale?: ScoreScale
}

export interface RankingDialect {
  /** The usual scale of its scores. */
  readonly scale: ScoreScale
  /** The server truncates documents to `maxTokensPerDocument`. Otherwise Weir does. */
  readonly cutsDocuments?: true
  /** The most documents in one call. */
  readonly batchSize: number
  request(input: RankingInput): DialectRequest
  /** Another request to try after the server refused the first one with this message. */
  fallback?(input: RankingInput, refusal: string): DialectRequest | undefined
  response(body: unknown, headers: EngineHeaders): RankingOutput | undefined
}

interface ImagesInput {
  readonly model: string
  readonly prompt: string
  readonly count: number
  readonly size: string | undefined
  /** The model's other parameters (quality, seed, steps …), already checked, by their wire names. */
  readonly parameters: Readonly<Record<string, unknown>>
}

interface ImagesOutput {
  readonly images: readonly { readonly base64: string; readonly revisedPrompt?: string }[]
}

export interface ImagesDialect {
  /** The most images in one call. */
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
  /** Ask only for the text, because the server does not support segments. */
  readonly textOnly: boolean
}

export interface SpeechOutput {
  readonly text: string
  /** The length of the recording, if the server reports it. */
  readonly seconds: number | undefined
  /** A code or a name, as the server reports it. */
  readonly language: string | undefined
  readonly segments: readonly Readonly<Record<string, unknown>>[] | undefined
  readonly words: readonly Readonly<Record<string, unknown>>[] | undefined
}

/** The recording is sent as the form's `file`. A dialect supplies the other fields. */
export interface SpeechDialect {
  request(input: SpeechInput): {
    readonly path: string
    readonly fields: Readonly<Record<string, string | readonly string[]>>
  }
  /** The server cannot translate. */
  readonly transcribesOnly?: true
  /** Whether this error message means that the server supports only plain text. */
  refusesSegments(refusal: string): boolean
  response(body: unknown): SpeechOutput | undefined
  /** Whether a successful status hides an error saying that the recording cannot be read. */
  isUnreadable?(body: unknown): boolean
}
