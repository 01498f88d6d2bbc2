import { noUsage, type Usage } from '../core/rating.ts'
import { tokenCount } from './reading.ts'

/** Token counts as callers see them. */
export interface WireUsage {
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly total_tokens: number
  readonly prompt_tokens_details: { readonly cached_tokens: number }
  readonly completion_tokens_details: { readonly reasoning_tokens: number }
}

/** What an engine reported, or undefined where it makes no sense. */
export function readUsage(
  reported: unknown,
  cachedElsewhere?: number,
): { usage: Usage; reasoningTokens: number } | undefined {
  if (typeof reported !== 'object' || reported === null) return undefined
  const { prompt_tokens, completion_tokens, prompt_tokens_details, completion_tokens_details } = reported as {
    prompt_tokens?: unknown
    completion_tokens?: unknown
    prompt_tokens_details?: { cached_tokens?: unknown } | null
    completion_tokens_details?: { reasoning_tokens?: unknown } | null
  }
  const inputTokens = tokenCount(prompt_tokens)
  // Not every operation has an output; but one that cannot be counted is not none.
  const outputTokens = tokenCount(completion_tokens ?? 0)
  if (inputTokens === undefined || outputTokens === undefined) return undefined
  const cachedInputTokens = Math.min(
    inputTokens,
    tokenCount(prompt_tokens_details?.cached_tokens) ?? cachedElsewhere ?? 0,
  )
  const reasoningTokens = Math.min(outputTokens, tokenCount(completion_tokens_details?.reasoning_tokens) ?? 0)
  return { usage: { ...noUsage, inputTokens, cachedInputTokens, outputTokens }, reasoningTokens }
}

export function toWireUsage(usage: Usage, reasoningTokens: number): WireUsage {
  return {
    prompt_tokens: usage.inputTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: usage.inputTokens + usage.outputTokens,
    prompt_tokens_details: { cached_tokens: usage.cachedInputTokens },
    completion_tokens_details: { reasoning_tokens: reasoningTokens },
  }
}
