import type { TextEvent } from '../runtime/engine-model.ts'
import type { JsonObject } from '../runtime/json-value.ts'
import { optionalBoolean, optionalObject } from './fields.ts'

export interface TextUsage {
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly total_tokens: number
  readonly prompt_tokens_details: { readonly cached_tokens: number }
}

/** Adds up the tokens of one request over its choices. */
export interface UsageTally {
  add(choice: number, event: TextEvent): void
  usage(): TextUsage
  /** One choice and its prompt. */
  usageOfChoice(choice: number): TextUsage
}

/** Counts each prompt once, however many of the `count` choices answer it. Choices are numbered prompt by prompt. */
export function usageTally(count: number): UsageTally {
  const prompts: { readonly tokens: number; readonly cachedTokens: number }[] = []
  const completionTokens: number[] = []
  return {
    add(choice, event) {
      if (event.kind !== 'prompt') completionTokens[choice] = event.completionTokens
      else prompts[choice] = { tokens: event.promptTokens, cachedTokens: event.cachedTokens }
    },
    usage: () =>
      textUsage(
        prompts.filter((_, choice) => choice % count === 0),
        completionTokens,
      ),
    usageOfChoice: (choice) => textUsage(prompts.slice(choice, choice + 1), completionTokens.slice(choice, choice + 1)),
  }
}

function textUsage(
  prompts: readonly { readonly tokens: number; readonly cachedTokens: number }[],
  completionTokens: readonly number[],
): TextUsage {
  const promptSum = sum(prompts.map(({ tokens }) => tokens))
  const completionSum = sum(completionTokens)
  return {
    prompt_tokens: promptSum,
    completion_tokens: completionSum,
    total_tokens: promptSum + completionSum,
    prompt_tokens_details: { cached_tokens: sum(prompts.map(({ cachedTokens }) => cachedTokens)) },
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

export interface StreamUsage {
  /** One last chunk with the usage. */
  readonly atEnd: boolean
  /** Usage in every chunk, so that an aborted stream can be billed. */
  readonly continuous: boolean
}

export function readStreamUsage(body: JsonObject): StreamUsage {
  const options = optionalObject(body, 'stream_options') ?? {}
  return {
    atEnd: optionalBoolean(options, 'include_usage') ?? false,
    continuous: optionalBoolean(options, 'continuous_usage_stats') ?? false,
  }
}

/** The `usage` field of a chunk with one choice: its count so far, as vLLM reports it, or null, or absent. */
export function chunkUsage(
  include: StreamUsage,
  tally: UsageTally,
  choice: number,
): { readonly usage?: TextUsage | null } {
  if (include.continuous) return { usage: tally.usageOfChoice(choice) }
  return include.atEnd ? { usage: null } : {}
}
