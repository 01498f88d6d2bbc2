import type { Job } from '../../engines/job.ts'
import { noUsage, type Usage } from '../../billing/rating/rating.ts'

/**
 * The most that a request can be billed for. An engine may report anything, so its counts are clamped to this. A spend
 * limit holds less of the input at first: a small text does not fill the context, and holding all of it would refuse
 * small requests needlessly. If an engine counts more than is held, the hold is raised before that is billed.
 */

/** An engine adds special tokens to each text, and for some models a short instruction. */
const ADDED_TOKENS = 256
/** A chat template adds more: a system prompt, and instructions for tools. */
export const CHAT_TEMPLATE_TOKENS = 8000

/** What the model reads: `contexts` separate texts, which have `bytes` together. */
export interface InputSize {
  readonly bytes: number
  /** Prompts, texts to embed, or documents to rank. */
  readonly contexts: number
  /** The most that the engine adds to each of them. */
  readonly addedTokens?: number
}

/** A model never reads more than its context at a time, and a text hardly ever has more tokens than bytes. */
export function inputBounds(size: InputSize, contextLength: number): Pick<Job, 'maxInputTokens' | 'heldInputTokens'> {
  const { bytes, contexts, addedTokens = ADDED_TOKENS } = size
  const maxInputTokens = contexts * contextLength
  return { maxInputTokens, heldInputTokens: Math.min(bytes + contexts * addedTokens, maxInputTokens) }
}

/** What a spend limit holds while the request runs. */
export function heldUsage({ heldInputTokens, maxTokens, media }: Job): Usage {
  return {
    ...noUsage,
    inputTokens: heldInputTokens,
    cachedInputTokens: heldInputTokens,
    outputTokens: maxTokens,
    images: media?.images ?? 0,
    audioMs: media?.audioMs ?? 0,
  }
}

/** The usage that is billed: what the engine reported, as far as it is possible. */
export function clampUsage(usage: Usage, job: Job): Usage {
  return clampTo({ ...heldUsage(job), inputTokens: job.maxInputTokens }, usage)
}

/** What is billed of it if the hold could not be raised. */
export function clampToHeld(usage: Usage, job: Job): Usage {
  return clampTo(heldUsage(job), usage)
}

function clampTo(most: Usage, usage: Usage): Usage {
  const inputTokens = Math.min(usage.inputTokens, most.inputTokens)
  return {
    inputTokens,
    cachedInputTokens: Math.min(usage.cachedInputTokens, inputTokens),
    outputTokens: Math.min(usage.outputTokens, most.outputTokens),
    images: Math.min(usage.images, most.images),
    audioMs: Math.min(usage.audioMs, most.audioMs),
  }
}
