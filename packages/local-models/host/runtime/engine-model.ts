import type { JsonObject } from './json-value.ts'

/** A loaded model. A runtime implements the abilities the model has; `wire/` offers them over HTTP. */
export interface EngineModel {
  /** An estimate of the memory the model takes while it is loaded. */
  readonly memoryBytes: number
  chat?(request: EngineChatRequest, signal: AbortSignal): AsyncIterable<TextEvent>
  complete?(request: CompletionRequest, signal: AbortSignal): AsyncIterable<TextEvent>
  embed?(request: EmbeddingRequest, signal: AbortSignal): Promise<Embeddings>
  score?(request: ScoreRequest, signal: AbortSignal): Promise<Scores>
  drawImages?(request: ImageRequest, signal: AbortSignal): Promise<readonly Buffer[]>
  transcribe?(request: SpeechRequest, signal: AbortSignal): Promise<RecognizedSpeech>
  close(): Promise<void>
}

export interface Sampling {
  readonly maxTokens?: number
  readonly temperature?: number
  readonly topP?: number
  readonly topK?: number
  readonly minP?: number
  readonly seed?: number
  readonly frequencyPenalty?: number
  readonly presencePenalty?: number
  readonly repetitionPenalty?: number
  readonly stop: readonly string[]
  /** How many alternatives to report with each token. Undefined: report no log probabilities at all. */
  readonly topLogprobs?: number
}

export interface ToolDefinition {
  readonly name: string
  readonly description?: string
  readonly parameters?: JsonObject
}

export type ToolChoice = 'none' | 'auto' | 'required' | { readonly name: string }

export type OutputFormat =
  | { readonly kind: 'text' }
  | { readonly kind: 'json' }
  | { readonly kind: 'json_schema'; readonly schema: JsonObject }

export interface EngineChatMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool'
  readonly text: string
  readonly images: readonly Buffer[]
  readonly toolCalls: readonly { readonly name: string; readonly arguments: string }[]
}

export interface EngineChatRequest {
  readonly messages: readonly EngineChatMessage[]
  readonly sampling: Sampling
  readonly tools: readonly ToolDefinition[]
  readonly toolChoice: ToolChoice
  /** Whether the model may call several tools in one answer. */
  readonly parallelToolCalls: boolean
  readonly format: OutputFormat
  /** Extra variables for the model's chat template, such as `enable_thinking`. */
  readonly templateVariables: JsonObject
}

export interface CompletionRequest {
  readonly prompt: string | readonly number[]
  readonly suffix?: string
  readonly echo: boolean
  readonly sampling: Sampling
}

export interface TokenLogprob {
  readonly text: string
  /** Null for the first token of an echoed prompt: nothing precedes it. */
  readonly logprob: number | null
  readonly top: readonly { readonly text: string; readonly logprob: number }[]
}

export type FinishReason = 'stop' | 'length' | 'tool_calls'

/** `prompt` comes first and `end` last. `completionTokens` is the count so far, so that an aborted stream can be billed. */
export type TextEvent =
  | { readonly kind: 'prompt'; readonly promptTokens: number; readonly cachedTokens: number }
  | {
      readonly kind: 'text'
      readonly text: string
      readonly completionTokens: number
      readonly logprobs?: readonly TokenLogprob[]
    }
  | { readonly kind: 'reasoning'; readonly text: string; readonly completionTokens: number }
  | {
      readonly kind: 'tool_call'
      readonly index: number
      readonly name: string
      readonly arguments: string
      readonly completionTokens: number
    }
  | { readonly kind: 'end'; readonly finishReason: FinishReason; readonly completionTokens: number }

export interface EmbeddingRequest {
  readonly texts: readonly string[]
  readonly dimensions?: number
}

export interface Embeddings {
  readonly vectors: readonly Float32Array[]
  readonly promptTokens: number
}

export interface ScoreRequest {
  readonly query: string
  readonly documents: readonly string[]
  readonly maxTokensPerDocument?: number
  /** Whether to cut a document that is longer than the model can read. If false, such a document is an error. */
  readonly truncate: boolean
}

export interface Scores {
  /** One raw score for each document, in the order given. Higher is better. */
  readonly logits: readonly number[]
  readonly promptTokens: number
}

export interface ImageRequest {
  readonly prompt: string
  readonly negativePrompt?: string
  readonly count: number
  readonly width?: number
  readonly height?: number
  readonly seed: number
  readonly steps?: number
  readonly guidance?: number
}

export interface SpeechRequest {
  readonly audio: Buffer
  readonly task: 'transcribe' | 'translate'
  /** ISO-639-1 code. Undefined: the model detects the language. */
  readonly language?: string
  readonly prompt?: string
  readonly temperature: number
}

export interface SpeechSegment {
  readonly startSeconds: number
  readonly endSeconds: number
  readonly text: string
  readonly tokens: readonly number[]
  readonly averageLogprob: number
  readonly noSpeechProbability: number
}

export interface RecognizedSpeech {
  /** ISO-639-1 code, as the caller gave it or as detected. */
  readonly language: string
  readonly durationSeconds: number
  readonly temperature: number
  readonly segments: readonly SpeechSegment[]
}
