import type { ApiError } from '../../core/errors.ts'
import type { AnswerHead } from '../../core/job.ts'
import type { WireUsage } from '../generation-usage.ts'

/** The form in which another API asks for a chat and gets its answer. Everything between the two is a chat's. */
export interface ChatForm {
  /** The path below /api/v1. */
  readonly endpoint: string
  /** What the API calls the messages, and the limit of the output. */
  readonly names: { readonly input: string; readonly limit: string }
  whole(head: AnswerHead, answer: ChatResult): object
  /** `likelyInputTokens`: an estimate, for an API that states the input before the engine has counted it. */
  stream(head: AnswerHead, likelyInputTokens: number): ChatEvents
}

/** The only choice of a complete answer. */
export interface ChatResult {
  readonly message: AnswerMessage
  readonly ending: ChatEnding
  readonly usage: WireUsage
}

export interface AnswerMessage {
  readonly role: 'assistant'
  readonly content: string | null
  readonly refusal: string | null
  readonly reasoning_content: string | undefined
  readonly tool_calls: readonly unknown[] | undefined
}

/** Why a choice ended. */
export interface ChatEnding {
  readonly reason: string
  /** The stop sequence that ended it, if the engine says which. */
  readonly stop: string | undefined
}

/** Turns the deltas of the only choice into the events of another API, as text. */
export interface ChatEvents {
  delta(delta: ChatDelta): string
  finish(ending: ChatEnding): void
  /** This form has no events for what the engine wrote. */
  isBroken(): boolean
  /** The last events, after the usage was recorded. */
  closing(usage: WireUsage): string
  failure(error: ApiError): string
  idle(): string
}

/** A delta in our field names, with only what it has. */
export interface ChatDelta {
  readonly content?: string
  readonly refusal?: string
  readonly reasoning_content?: string
  readonly tool_calls?: readonly object[]
}

/** vLLM and SGLang say which stop sequence was met; for a token, they give its number. */
export function endingOf(choice: object, reason: string): ChatEnding {
  const { stop_reason: ofVllm, matched_stop: ofSglang } = choice as { stop_reason?: unknown; matched_stop?: unknown }
  const said = ofVllm ?? ofSglang
  return { reason, stop: typeof said === 'string' ? said : undefined }
}
