import type { TextEvent } from '../runtime/engine-model.ts'
import { optionalBoolean, optionalObject } from './fields.ts'
import type { Fields } from './fields.ts'

export interface TextUsage {
  prompt_tokens: number
  completion_tokens: number
  total_tokens: number
  prompt_tokens_details: { cached_tokens: number }
}

/** Adds up the usage of one request over its choices: the prompt counts once, however many answers it gets. */
export class UsageTally {
  #promptTokens = 0
  #cachedTokens = 0
  readonly #completionTokens: number[] = []

  add(choice: number, event: TextEvent): void {
    if (event.kind !== 'prompt') {
      this.#completionTokens[choice] = event.completionTokens
    } else if (choice === 0) {
      this.#promptTokens = event.promptTokens
      this.#cachedTokens = event.cachedTokens
    }
  }

  usage(): TextUsage {
    const completionTokens = this.#completionTokens.reduce((sum, count) => sum + count, 0)
    return {
      prompt_tokens: this.#promptTokens,
      completion_tokens: completionTokens,
      total_tokens: this.#promptTokens + completionTokens,
      prompt_tokens_details: { cached_tokens: this.#cachedTokens },
    }
  }
}

export function sumUsage(usages: readonly TextUsage[]): TextUsage {
  const sum = (pick: (usage: TextUsage) => number) => usages.reduce((total, usage) => total + pick(usage), 0)
  return {
    prompt_tokens: sum((usage) => usage.prompt_tokens),
    completion_tokens: sum((usage) => usage.completion_tokens),
    total_tokens: sum((usage) => usage.total_tokens),
    prompt_tokens_details: { cached_tokens: sum((usage) => usage.prompt_tokens_details.cached_tokens) },
  }
}

export interface StreamUsage {
  /** A last chunk with the usage. */
  atEnd: boolean
  /** Usage in every chunk: what makes an aborted stream billable. */
  continuous: boolean
}

export function readStreamUsage(body: Fields): StreamUsage {
  const options: Fields = optionalObject(body, 'stream_options') ?? {}
  return {
    atEnd: optionalBoolean(options, 'include_usage') ?? false,
    continuous: optionalBoolean(options, 'continuous_usage_stats') ?? false,
  }
}

/** The `usage` field of a stream chunk: absent, null until the last chunk, or running. */
export function chunkUsage(wanted: StreamUsage, usages: () => TextUsage): { usage?: TextUsage | null } {
  if (wanted.continuous) return { usage: usages() }
  return wanted.atEnd ? { usage: null } : {}
}
