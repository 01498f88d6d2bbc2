import type { Deployment, Model } from '../catalog/model.ts'
import type { ByteCollector } from '../shared/byte-collector.ts'
import type { ApiError } from '../shared/errors.ts'
import type { Rates, ServiceTier, Usage } from '../billing/rating/rating.ts'
import type { PromptBlocks } from './prefix/prompt-blocks.ts'

/** What a request costs, and how it is metered. Plain data, which may come from another thread. */
export interface JobTerms {
  readonly tier: ServiceTier
  /** The tokens that admission charges: input plus allowed output. */
  readonly cost: number
  /** The allowed output of all choices together; 0 when the endpoint generates no text. */
  readonly maxTokens: number
  /** The most input tokens that can be billed, however many the engine reports: all contexts that it can fill. */
  readonly maxInputTokens: number
  /** The input tokens that a spend limit holds from the start. If the engine counts more, the hold is raised. */
  readonly heldInputTokens: number
  /** Used when the engine reports no usage. */
  readonly likelyInputTokens: number
  /** undefined if the count cannot be predicted: images may take any number of tokens. */
  readonly expectedInput?: ExpectedCount | undefined
  /** What is billed besides tokens: the images requested and their kind, and the length of the audio. */
  readonly media?: { readonly images?: number; readonly imageKind?: string; readonly audioMs?: number }
  /** The engine's input, if the choice of address depends on it. */
  readonly prompt?: PromptBlocks | undefined
  /** What was left out of the request, for a header of the answer. */
  readonly warnings?: readonly string[]
}

/** A checked request: what to send to the engine, and how to read its answer. */
export interface Job extends JobTerms {
  /** The path below /api/v1. */
  readonly endpoint: string
  readonly model: Model
  readonly deployment: Deployment
  /** Made one after the other. There are several if the engine accepts less at a time. */
  readonly calls: readonly EngineRequest[]
  readonly answer: WholeAnswer | StreamedAnswer
}

export interface EngineRequest {
  /** Relative to the engine's base address, or to its root when it starts with two slashes. */
  readonly path: string
  readonly contentType: string
  readonly body: Buffer | StreamedBody
  /** The input is the same as in the previous call, and is billed once. */
  readonly repeatsInput?: boolean
  /** The request to make if the stream of this one is empty. If the engine refuses it, its error is the reason. */
  readonly ifSilent?: EngineRequest
  /** The parameter to name when the engine finds the input too long. */
  readonly inputName?: string
  /** Another request to try after the engine refused this one; undefined if there is none. */
  fallback?(refusal: ApiError): EngineRequest | undefined
}

/** A body that stays on disk and is opened for each attempt. A piece is valid until the next one is requested. */
interface StreamedBody {
  readonly length: number
  open(): AsyncIterable<Buffer>
}

/**
 * How many input tokens an engine should count. A count outside this range may be of something else than tokens
 * (characters, words), include more than the text (a long system prompt of the template), or not cover the whole input.
 */
export interface ExpectedCount {
  readonly least: number
  readonly most: number
}

/** The price of a request. It is fixed at admission and does not change afterwards. */
export interface Price {
  readonly version: number
  readonly rates: Rates
}

/** The fields that all parts of an answer share. */
export interface AnswerHead {
  /** The id of the request. */
  readonly id: string
  readonly created: number
  /** The slug, not the engine's name for the model. */
  readonly model: string
  /** Set if the answer has to name it: it is not the default one. */
  readonly tier?: ServiceTier
}

/** The headers of an engine's answer, by lower-case name. */
export type EngineHeaders = Readonly<Record<string, string | readonly string[] | undefined>>

export interface WholeAnswer {
  readonly kind: 'whole'
  /** For an answer that may be large and needs no change: forwards it while it arrives. */
  readonly passThrough?: ((head: AnswerHead) => PassThrough) | undefined
  /**
   * Reads one body, and its headers, for each call. undefined: the engine's answer does not match the request.
   * Asynchronous when it stores files for links. If it throws, nothing is billed.
   */
  read(
    bodies: readonly ByteCollector[],
    head: AnswerHead,
    headers: readonly EngineHeaders[],
  ): Promise<ParsedAnswer | undefined>
}

/**
 * Forwards an answer while it arrives, so that it is never in memory as a whole. Only its end is held back until the
 * usage is recorded. An answer that fails midway is cut off.
 */
export interface PassThrough {
  /**
   * The bytes to forward; undefined until forwarding starts. If it never starts, the answer is read whole.
   * Throws when the rest of the answer does not match what was already forwarded.
   */
  push(chunk: Buffer): Buffer | undefined
  /** The rest of the answer to render; undefined if the engine's answer does not match the request. */
  end(headers: EngineHeaders): ParsedAnswer | undefined
}

export interface ParsedAnswer {
  /** undefined when the engine reported none. */
  readonly usage: Usage | undefined
  /** The part of `usage` that is only an estimate, because the engine counted one choice or one prompt of several. */
  readonly estimated?: 'output' | 'input and output' | undefined
  /** The engine generated more than was allowed. The rest has been cut off. */
  readonly isPastLimit?: boolean
  outputBytes(): number
  /** application/json by default. */
  readonly contentType?: string
  /** In several pieces if joining them would copy something large. */
  render(usage: Usage): string | Buffer | readonly Buffer[]
}

export interface StreamedAnswer {
  readonly kind: 'streamed'
  relay(head: AnswerHead): StreamRelay
}

/**
 * Converts the streams of an engine to ours and checks them: one for each call, one after the other. Text is latin1:
 * one character per byte.
 */
export interface StreamRelay {
  /** The text to send for a chunk from the engine. */
  push(chunk: Buffer): string
  /** The engine has sent [DONE], or everything that it may send in this call. */
  isDone(): boolean
  /** The engine sent something that is not a valid event, or reported an error. */
  isBroken(): boolean
  /** The event that was wrong: it may be a refusal, as JSON. */
  wrongEvent(): string | undefined
  /**
   * Continues with the stream of the next call. False if the stream of this call is incomplete, so that no other may
   * follow.
   */
  next(): boolean
  /** Every choice has its finish_reason. A stream that ends before that is broken. */
  isComplete(): boolean
  /** The engine generated more than was allowed. The stream ends at the limit. */
  isPastLimit(): boolean
  /** The engine's latest count, if there is one. */
  reportedUsage(): Usage | undefined
  /** Events with content. Each has at least one token, so this never exceeds the tokens produced. */
  deltaCount(): number
  /** Events with content after the latest count. */
  deltasSinceReport(): number
  /** The end of a complete answer. */
  closing(usage: Usage): string
  /** The end of an answer that did not complete. */
  failure(error: ApiError): string
  /** What to send after a while without output; undefined if the API has nothing for that. */
  readonly idle?: (() => string) | undefined
}
