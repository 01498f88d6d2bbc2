import type { ApiError } from '../../shared/errors.ts'
import type { AnswerHead } from '../../engines/job.ts'
import type { WireUsage } from '../generation/generation-usage.ts'

/** The request and answer format of another API for a chat. Everything in between is the same as for a chat. */
export interface ChatForm {
  /** The path below /api/v1. */
  readonly endpoint: string
  /** The API's names for the messages and for the output limit. */
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
  /** The stop sequence that ended it, if the engine reports it. */
  readonly stop: string | undefined
}

/** Converts the deltas of the only choice to the events of another API, as text. */
export interface ChatEvents {
  delta(delta: ChatDelta): string
  finish(ending: ChatEnding): void
  /** This format has no events for what the engine generated. */
  isBroken(): boolean
  /** The last events, after the usage was recorded. */
  closing(usage: WireUsage): string
  failure(error: ApiError): string
  idle(): string
}

/** A delta in our field names, with only the fields that it has. */
export interface ChatDelta {
  readonly content?: string
  readonly refusal?: string
  readonly reasoning_content?: string
  readonly tool_calls?: readonly unknown[]
}

/** vLLM and SGLang report which stop sequence was met; for a token, they report its id. */
export function endingOf(choice: object, reason: string): ChatEnding {
  const { stop_reason: ofVllm, matched_stop: ofSglang } = choice as { stop_reason?: unknown; matched_stop?: unknown }
  const sequence = ofVllm ?? ofSglang
  return { reason, stop: typeof sequence === 'string' ? sequence : undefined }
}
