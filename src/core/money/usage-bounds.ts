import type { Job } from '../job.ts'
import { noUsage, type Usage } from './rating.ts'

/**
 * What a request can be billed for at most. An engine may report anything, so what it reports is clamped to this, and a
 * spend limit holds the price of this while the request runs: nothing that is billed was not held.
 */

/** An engine adds special tokens to each text, and for some models a short instruction. */
const ADDED_TOKENS = 256
/** A chat template adds more: a system prompt, and instructions for tools. */
export const CHAT_TEMPLATE_TOKENS = 8000

/** What the model reads: `contexts` texts, each by itself, which have `bytes` together. */
export interface InputSize {
  readonly bytes: number
  /** Prompts, texts to embed, or documents to rank. */
  readonly contexts: number
  /** What the engine adds to each of them at most. */
  readonly addedTokens?: number
}

/** A text never has more tokens than bytes, and a model never reads more than its context at a time. */
export function mostInputTokens(size: InputSize, contextLength: number): number {
  const { bytes, contexts, addedTokens = ADDED_TOKENS } = size
  return Math.min(bytes + contexts * addedTokens, contexts * contextLength)
}

export function usageBounds({ maxInputTokens, maxTokens, media }: Job): Usage {
  return {
    ...noUsage,
    inputTokens: maxInputTokens,
    cachedInputTokens: maxInputTokens,
    outputTokens: maxTokens,
    images: media?.images ?? 0,
    audioMs: media?.audioMs ?? 0,
  }
}

/** The usage that is billed: what the engine reported, as far as it is possible. */
export function clampUsage(usage: Usage, job: Job): Usage {
  const most = usageBounds(job)
  const inputTokens = Math.min(usage.inputTokens, most.inputTokens)
  return {
    inputTokens,
    cachedInputTokens: Math.min(usage.cachedInputTokens, inputTokens),
    outputTokens: Math.min(usage.outputTokens, most.outputTokens),
    images: Math.min(usage.images, most.images),
    audioMs: Math.min(usage.audioMs, most.audioMs),
  }
}
