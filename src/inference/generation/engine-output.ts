import { asList, asRecord, wholeNumber, type JsonRecord, finiteNumber } from '../../engines/dialects/reading.ts'

/** One event of an engine's stream. */
export interface StreamChunk<Choice> extends JsonRecord {
  readonly choices?: readonly Choice[] | null
}

const nothing: StreamChunk<never> = {}

/**
 * Parses an event. One that is empty or `null` has no content. `unreadable` is not JSON; `wrong` reports an error or
 * has something else in place of a choice.
 */
export function readChunk<Choice>(json: string): StreamChunk<Choice> | 'unreadable' | 'wrong' {
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch {
    return json.trim() === '' ? nothing : 'unreadable'
  }
  if (typeof value !== 'object' || Array.isArray(value)) return 'wrong'
  // null is read as an empty record.
  const chunk = asRecord(value)
  return isGiven(chunk['error']) || !asList(chunk['choices'] ?? [])?.every(isChoice) ? 'wrong' : chunk
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null
}

/** Whether every field that Weir reads is missing or of its type. */
function isChoice(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const { index, delta, text, finish_reason: reason } = asRecord(value)
  return (
    (!isGiven(index) || wholeNumber(index) !== undefined) &&
    (!isGiven(delta) || (typeof delta === 'object' && !Array.isArray(delta))) &&
    (!isGiven(text) || typeof text === 'string') &&
    (!isGiven(reason) || typeof reason === 'string')
  )
}

/** Events are read as latin1: see shared/event-stream.ts. */

/** One character per byte. */
export function toBytes(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1')
}

export function fromBytes(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString('utf8')
}

/** Offset just past the bracket that closes the one at `open`. The text must be valid JSON. */
export function endOfArray(text: string, open: number): number {
  let depth = 0
  for (let index = open; index < text.length; index++) {
    switch (text.charCodeAt(index)) {
      case 0x22: // "
        for (index++; index < text.length && text.charCodeAt(index) !== 0x22; index++)
          if (text.charCodeAt(index) === 0x5c /* \\ */) index++
        break
      case 0x5b: // [
        depth++
        break
      case 0x5d: // ]
        if (--depth === 0) return index + 1
        break
      default:
    }
  }
  return text.length
}

/** Other names that some servers use for the reasons. */
const otherNames: Readonly<Record<string, string>> = {
  eos: 'stop',
  eos_token: 'stop',
  end_turn: 'stop',
  stop_sequence: 'stop',
  max_tokens: 'length',
  function_call: 'tool_calls',
}

/** vLLM and SGLang report this for a choice that was aborted on their side. */
const BROKEN_OFF = new Set(['abort', 'error'])

/** Why a choice ended, by the name that callers know; undefined if it has not ended, or was aborted. */
export function finishReason(reason: unknown): string | undefined {
  if (typeof reason !== 'string' || reason === '' || BROKEN_OFF.has(reason)) return undefined
  return otherNames[reason] ?? reason
}

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
