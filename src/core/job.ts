import type { Deployment, Model } from './catalog.ts'
import type { Rates, Usage } from './rating.ts'

/** A request that has been checked and knows where to go. */
export interface Job {
  /** Below /api/v1, and at the engine. */
  readonly endpoint: string
  readonly model: Model
  readonly deployment: Deployment
  readonly price: Price
  /** What admission charges: input and allowed output, in tokens. */
  readonly cost: number
  /** The allowed output of all choices together; 0 where the endpoint generates no text. */
  readonly maxTokens: number
  /** For an engine that reports no usage. */
  readonly likelyInputTokens: number
  /** What the engine is sent. */
  readonly body: Buffer
  readonly answer: WholeAnswer | StreamedAnswer
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

export interface WholeAnswer {
  readonly kind: 'whole'
  /** undefined: the engine's bytes are not what was asked for. */
  read(body: Buffer, head: AnswerHead): ReadAnswer | undefined
}

export interface ReadAnswer {
  /** What the engine reported. */
  readonly usage: Usage | undefined
  outputBytes(): number
  render(usage: Usage): string
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
  /** The end of a complete answer. */
  closing(usage: Usage): string
}
