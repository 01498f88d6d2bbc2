/** What a loaded model can do. Runtimes implement the abilities they have; `wire/` turns them into HTTP. */

export interface EngineModel {
  /** Bytes the model is believed to hold while loaded; the idle budget counts them. */
  readonly memoryBytes: number
  chat?(request: ChatRequest, signal: AbortSignal): AsyncIterable<TextEvent>
  complete?(request: CompletionRequest, signal: AbortSignal): AsyncIterable<TextEvent>
  embed?(request: EmbeddingRequest, signal: AbortSignal): Promise<Embeddings>
  score?(request: ScoreRequest, signal: AbortSignal): Promise<Scores>
  drawImages?(request: ImageRequest, signal: AbortSignal): Promise<Buffer[]>
  transcribe?(request: SpeechRequest, signal: AbortSignal): Promise<Transcript>
  close(): Promise<void>
}

export interface Sampling {
  maxTokens?: number
  temperature?: number
  topP?: number
  topK?: number
  minP?: number
  seed?: number
  frequencyPenalty?: number
  presencePenalty?: number
  repetitionPenalty?: number
  stop: readonly string[]
  /** How many alternatives to report with each token; absent = no log probabilities at all. */
  topLogprobs?: number
}

export interface ToolDefinition {
  name: string
  description?: string
  parameters?: JsonObject
}

export type ToolChoice = 'none' | 'auto' | 'required' | { name: string }

export type OutputFormat = { kind: 'text' } | { kind: 'json' } | { kind: 'json_schema'; schema: JsonObject }

export interface ChatMessage {
  role: 'system' | 'user' | 'assistant' | 'tool'
  text: string
  images: readonly Buffer[]
  toolCalls?: readonly { id: string; name: string; arguments: string }[]
  toolCallId?: string
}

export interface ChatRequest {
  messages: readonly ChatMessage[]
  sampling: Sampling
  tools: readonly ToolDefinition[]
  toolChoice: ToolChoice
  format: OutputFormat
  /** Extra variables for the model's chat template (`enable_thinking` and the like). */
  templateVariables: JsonObject
}

export interface CompletionRequest {
  prompt: string | readonly number[]
  suffix?: string
  echo: boolean
  sampling: Sampling
}

export interface TokenLogprob {
  text: string
  /** Null for the very first prompt token of an echo: nothing precedes it. */
  logprob: number | null
  top: readonly { text: string; logprob: number }[]
}

export type FinishReason = 'stop' | 'length' | 'tool_calls'

/** `prompt` comes first, `end` last; `completionTokens` is the running total, so an aborted stream can be billed. */
export type TextEvent =
  | { kind: 'prompt'; promptTokens: number; cachedTokens: number }
  | { kind: 'text'; text: string; completionTokens: number; logprobs?: readonly TokenLogprob[] }
  | { kind: 'reasoning'; text: string; completionTokens: number }
  | { kind: 'tool_call'; index: number; name?: string; arguments: string; completionTokens: number }
  | { kind: 'end'; finishReason: FinishReason; completionTokens: number }

export interface EmbeddingRequest {
  texts: readonly string[]
  dimensions?: number
}

export interface Embeddings {
  vectors: readonly Float32Array[]
  promptTokens: number
}

export interface ScoreRequest {
  query: string
  documents: readonly string[]
  maxTokensPerDocument?: number
  /** False: a document longer than the model can read is an error. True: it is cut. */
  truncate: boolean
}

export interface Scores {
  /** One raw score a document, in the order given: higher fits better. */
  logits: readonly number[]
  promptTokens: number
}

export interface ImageRequest {
  prompt: string
  negativePrompt?: string
  count: number
  width?: number
  height?: number
  seed: number
  steps?: number
  guidance?: number
}

export interface SpeechRequest {
  audio: Buffer
  task: 'transcribe' | 'translate'
  language?: string
  prompt?: string
  temperature: number
}

export interface Segment {
  startSeconds: number
  endSeconds: number
  text: string
  tokens: readonly number[]
  averageLogprob: number
  noSpeechProbability: number
}

export interface Transcript {
  /** ISO-639-1 code, given or detected. */
  language: string
  durationSeconds: number
  temperature: number
  segments: readonly Segment[]
}

export type Json = string | number | boolean | null | Json[] | JsonObject
export interface JsonObject {
  [key: string]: Json
}

/** A failure the caller may read. Anything else thrown becomes a bare 500. */
export class EngineError extends Error {
  readonly status: number
  readonly type: string
  readonly code: string
  readonly param: string | null

  constructor(status: number, code: string, message: string, param: string | null = null) {
    super(message)
    this.status = status
    this.code = code
    this.param = param
    this.type = status < 500 ? 'invalid_request_error' : 'server_error'
  }
}

export function invalidValue(param: string, message: string): EngineError {
  return new EngineError(400, 'invalid_value', message, param)
}

export function contextLengthExceeded(limit: number, requested: number): EngineError {
  const message = `This model's maximum context length is ${limit} tokens, but the request needs ${requested}.`
  return new EngineError(400, 'context_length_exceeded', message, 'messages')
}
