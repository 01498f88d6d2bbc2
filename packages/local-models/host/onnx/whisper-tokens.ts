import { readFile } from 'node:fs/promises'
import { Tokenizer } from '@huggingface/tokenizers'

interface GenerationConfig {
  readonly decoder_start_token_id: number
  readonly eos_token_id: number
  readonly no_timestamps_token_id: number
  readonly lang_to_id: Readonly<Record<string, number>>
  readonly task_to_id: { readonly transcribe: number; readonly translate: number }
  readonly suppress_tokens: readonly number[]
  readonly begin_suppress_tokens: readonly number[]
}

/** The special tokens of one whisper model, and its tokenizer. */
export interface WhisperTokens {
  readonly start: number
  readonly end: number
  /** Stands before the text of the preceding audio, or of the caller's prompt. */
  readonly previous: number
  readonly noSpeech: number
  readonly noTimestamps: number
  /** Time 0. Each token above it is 0.02 s later. */
  readonly firstTimestamp: number
  readonly task: { readonly transcribe: number; readonly translate: number }
  readonly languages: ReadonlyMap<string, number>
  readonly suppressed: readonly number[]
  readonly suppressedAtStart: readonly number[]
  encode(text: string): readonly number[]
  decode(tokens: readonly number[]): string
}

export async function loadWhisperTokens(tokenizerPath: string, generationPath: string): Promise<WhisperTokens> {
  const tokenizer = new Tokenizer(JSON.parse(await readFile(tokenizerPath, 'utf8')) as object, {})
  const config = JSON.parse(await readFile(generationPath, 'utf8')) as GenerationConfig
  const noTimestamps = config.no_timestamps_token_id
  const languages = Object.entries(config.lang_to_id).map(([name, id]): [string, number] => [name.slice(2, -2), id])
  return {
    start: config.decoder_start_token_id,
    end: config.eos_token_id,
    // In every multilingual whisper, these two stand right before the no-timestamps token.
    previous: noTimestamps - 2,
    noSpeech: noTimestamps - 1,
    noTimestamps,
    firstTimestamp: noTimestamps + 1,
    task: config.task_to_id,
    languages: new Map(languages),
    suppressed: config.suppress_tokens,
    suppressedAtStart: config.begin_suppress_tokens,
    encode: (text) => tokenizer.encode(text, { add_special_tokens: false }).ids,
    decode: (tokens) => tokenizer.decode([...tokens].filter((token) => token < config.eos_token_id)),
  }
}
