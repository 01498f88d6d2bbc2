import type { Job } from '../job.ts'
import { noUsage, type Usage } from './rating.ts'

/**
 * What a request can be billed for at most. An engine may report anything, so what it reports is clamped to this, and a
 * spend limit holds the price of this while the request runs: nothing that is billed was not held.
 */

/** A chat template adds its own text to what the model reads: a system prompt, instructions for tools, special tokens. */
const TEMPLATE_TOKENS = 512

/** What the model reads: `contexts` texts, each by itself, which have `bytes` together. */
export interface InputSize {
  readonly bytes: number
  /** Prompts, texts to embed, or documents to rank. */
  readonly contexts: number
}

/** A text never has more tokens than bytes, and a model never reads more than its context at a time. */
export function mostInputTokens({ bytes, contexts }: InputSize, contextLength: number): number {
  return Math.min(bytes + contexts * TEMPLATE_TOKENS, contexts * contextLength)
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
