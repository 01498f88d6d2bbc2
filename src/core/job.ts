import type { Deployment, Model } from './catalog.ts'
import type { ByteCollector } from './byte-collector.ts'
import type { ApiError } from './errors.ts'
import type { Rates, Usage } from './money/rating.ts'

/** A request that has been checked and knows where to go. */
export interface Job {
  /** Below /api/v1. */
  readonly endpoint: string
  readonly model: Model
  readonly deployment: Deployment
  /** What admission charges: input and allowed output, in tokens. */
  readonly cost: number
  /** The allowed output of all choices together; 0 where the endpoint generates no text. */
  readonly maxTokens: number
  /** For an engine that reports no usage. */
  readonly likelyInputTokens: number
  /** Beyond tokens: the images asked for and of what kind, and the audio handed in, to the millisecond. */
  readonly media?: { readonly images?: number; readonly imageKind?: string; readonly audioMs?: number }
  /** What the engine is sent: one call, or several where it takes less at a time; one after the other. */
  readonly calls: readonly EngineRequest[]
  readonly answer: WholeAnswer | StreamedAnswer
}

/** One request to an engine. */
export interface EngineRequest {
  /** Below the engine's base address; from its root where it begins with two slashes. */
  readonly path: string
  readonly contentType: string
  readonly body: Buffer | StreamedBody
  /** The parameter to name where an engine finds the input too long. */
  readonly inputName?: string
  /** What to ask an engine that refused this; undefined: the refusal stands. */
  instead?(refusal: ApiError): EngineRequest | undefined
}

/** A body that stays on disk: opened anew for each attempt. A piece is good until the next is asked for. */
export interface StreamedBody {
  readonly length: number
  open(): AsyncIterable<Buffer>
}

/** A price as a request meets it: fixed at admission, whatever changes later. */
export interface Price {
  readonly version: number
  readonly rates: Rates
}

/** What all parts of one answer have in common. */
export interface AnswerHead {
  /** The request's id. */
  readonly id: string
  readonly created: number
  /** The slug, whatever the engine calls the model. */
  readonly model: string
}

/** Headers of an engine's answer; names are in small letters. */
export type AnswerHeaders = Readonly<Record<string, string | readonly string[] | undefined>>

export interface WholeAnswer {
  readonly kind: 'whole'
  /** For one that may be large and needs no change: what takes it through. */
  readonly passThrough?: ((head: AnswerHead) => PassThrough) | undefined
  /**
   * One body for each call, and its headers: some servers count there. undefined: the engine's bytes are not what was asked for. It may take its time,
   * to put files where links lead to; where that fails, it throws, and nothing is billed.
   */
  read(
    bodies: readonly ByteCollector[],
    head: AnswerHead,
    headers: readonly AnswerHeaders[],
  ): ReadAnswer | undefined | Promise<ReadAnswer | undefined>
}

/**
 * Sends an answer on while it comes, so that it is never in memory. Only its end is held back, until it has
 * been recorded; one that breaks on the way is cut off.
 */
export interface PassThrough {
  /** What to send on; undefined: not yet, or never, and it is read whole. It throws where that was begun in vain. */
  push(chunk: Buffer): Buffer | undefined
  /** What is left to render; undefined where it is not what was asked for. */
  end(headers: AnswerHeaders): ReadAnswer | undefined
}

export interface ReadAnswer {
  /** What the engine reported. */
  readonly usage: Usage | undefined
  outputBytes(): number
  /** JSON unless it says otherwise. */
  readonly contentType?: string
  /** In pieces where joining them would be a copy of something large. */
  render(usage: Usage): string | Buffer | readonly Buffer[]
}

export interface StreamedAnswer {
  readonly kind: 'streamed'
  relay(head: AnswerHead): StreamRelay
}

/** Turns an engine's stream into ours, and watches it. Text is latin1: one character a byte. */
export interface StreamRelay {
  /** What to send on for a chunk of the engine's bytes. */
  push(chunk: Buffer): string
  /** The engine has said all it will. */
  isDone(): boolean
  /** Something came that is no such stream, or the engine reported an error in it. */
  isBroken(): boolean
  /** Every choice has its finish_reason; an end before that is a break, however clean. */
  isComplete(): boolean
  /** The engine's latest count, if it gave any. */
  reportedUsage(): Usage | undefined
  /** Events with content: at least one token each, so never more than the engine produced. */
  deltaCount(): number
  /** Those of them that came after the latest count. */
  deltasSinceReport(): number
  /** The end of a complete answer. */
  closing(usage: Usage): string
}
