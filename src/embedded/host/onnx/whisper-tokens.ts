import { readFile } from 'node:fs/promises'
import { Tokenizer } from '@huggingface/tokenizers'

interface GenerationConfig {
  decoder_start_token_id: number
  eos_token_id: number
  no_timestamps_token_id: number
  lang_to_id: Record<string, number>
  task_to_id: { transcribe: number; translate: number }
  suppress_tokens: number[]
  begin_suppress_tokens: number[]
}

/** The special tokens of one whisper model, and its text. */
export interface WhisperTokens {
  start: number
  end: number
  /** Before the prompt that says what came earlier. */
  previous: number
  noSpeech: number
  noTimestamps: number
  /** Time 0; each token above is 0.02 s later. */
  firstTimestamp: number
  task: { transcribe: number; translate: number }
  languages: ReadonlyMap<string, number>
  suppressed: readonly number[]
  suppressedAtStart: readonly number[]
  encode(text: string): number[]
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
    // These stand right before the no-timestamps token in every multilingual whisper.
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
