import { asList, asRecord, finiteNumber, type JsonRecord } from '../../engines/dialects/reading.ts'

/** Log probabilities. Chat has a list of tokens; text completion has a list for each field. */

interface TextLogprobs {
  readonly tokens: readonly string[]
  readonly token_logprobs: readonly (number | null)[]
  readonly top_logprobs: readonly (Readonly<Record<string, number | null>> | null)[]
  /** Where each token starts in the text, in characters. */
  readonly text_offset: readonly number[]
}

/** Whether log probabilities have the format of chat. */
export function isChatLogprobs(logprobs: unknown): boolean {
  return Array.isArray(asRecord(logprobs)['content'])
}

/** The log probabilities of a text completion. llama.cpp sends those of a chat. `start`: where their text starts. */
export function textLogprobs(logprobs: unknown, start: number): unknown {
  if (!isChatLogprobs(logprobs)) return logprobs ?? null
  const entries = (asList(asRecord(logprobs)['content']) ?? []).map(asRecord)
  let offset = start
  const text_offset = entries.map((entry) => {
    const place = offset
    offset += charactersIn(tokenOf(entry))
    return place
  })
  return {
    tokens: entries.map(tokenOf),
    token_logprobs: entries.map(logprobOf),
    top_logprobs: entries.map(({ top_logprobs: top }) => {
      const list = asList(top)
      return list ? Object.fromEntries(list.map(asRecord).map((it) => [tokenOf(it), logprobOf(it)])) : null
    }),
    text_offset,
  } satisfies TextLogprobs
}

/** The log probabilities of a chat. Some servers send those of a text completion. */
export function chatLogprobs(logprobs: unknown): unknown {
  const { tokens, token_logprobs: values, top_logprobs: tops } = asRecord(logprobs)
  const list = asList(tokens)
  if (!list) return logprobs ?? null
  return {
    content: list.map((token, index) => ({
      ...chatEntry(token, asList(values)?.[index]),
      top_logprobs: Object.entries(asRecord(asList(tops)?.[index])).map(([it, value]) => chatEntry(it, value)),
    })),
    refusal: null,
  }
}

function chatEntry(token: unknown, logprob: unknown): object {
  const text = typeof token === 'string' ? token : ''
  return { token: text, logprob: finiteNumber(logprob) ?? null, bytes: [...Buffer.from(text)] }
}

/** Counts like the tokenizers, which are written in Python: a character outside the basic plane counts as one. */
export function charactersIn(text: string): number {
  let characters = 0
  for (const _ of text) characters++
  return characters
}

function tokenOf({ token }: JsonRecord): string {
  return typeof token === 'string' ? token : ''
}

function logprobOf({ logprob }: JsonRecord): number | null {
  return finiteNumber(logprob) ?? null
}
