import type { Dialect, ImagesDialect, RankingDialect, SpeechDialect } from './dialect.ts'
import {
  generation,
  includeUsage,
  openaiEmbeddings,
  openaiImages,
  openaiSpeech,
  plainRanking,
  readSpeech,
} from './openai.ts'
import type { JsonRecord } from './reading.ts'
import { uncounted } from './without-counts.ts'

const withoutBars = (text: string): string => text.replaceAll('|', ' ')

/** LocalAI expects the negative prompt after a `|`, so any other `|` is removed. */
const localaiImages: ImagesDialect = {
  ...openaiImages,
  request(input) {
    const { negative_prompt: negative, ...parameters } = input.parameters
    const positive = withoutBars(input.prompt)
    const prompt = typeof negative === 'string' ? `${positive}|${withoutBars(negative)}` : positive
    return openaiImages.request({ ...input, prompt, parameters })
  },
}

/** LocalAI counts words instead of tokens, and only those of the query. Weir's own estimate is closer. */
const localaiRanking: RankingDialect = {
  ...plainRanking('probability'),
  response: uncounted(plainRanking('probability').response),
}

/** A time above this must be in nanoseconds: no recording is this many seconds long. */
const MAX_SECONDS = 1_000_000

/** LocalAI has no path for translations, and reports times in nanoseconds. */
const localaiSpeech: SpeechDialect = {
  ...openaiSpeech,
  transcribesOnly: true,
  response(body) {
    const output = readSpeech(body)
    if (!output?.segments?.some((segment) => Number(segment['end']) > MAX_SECONDS)) return output
    const { seconds = 0, segments, words } = output
    return {
      ...output,
      seconds: seconds > MAX_SECONDS ? seconds / 1e9 : output.seconds,
      segments: segments.map(inSeconds),
      words: words?.map(inSeconds),
    }
  },
}

function inSeconds(timed: JsonRecord): JsonRecord {
  return { ...timed, start: Number(timed['start']) / 1e9, end: Number(timed['end']) / 1e9 }
}

export const localai: Dialect = {
  chat: generation('/chat/completions', includeUsage),
  completions: generation('/completions', includeUsage),
  embeddings: openaiEmbeddings,
  ranking: localaiRanking,
  images: localaiImages,
  speech: localaiSpeech,
}

const SDCPP_TAG = /<\/?sd_cpp_extra_args>/g

/**
 * stable-diffusion.cpp's server: OpenAI's format, with extra arguments inside the prompt. It uses the first ones it
 * finds, so a caller's own tags are removed: they would bypass every check.
 */
const sdcppImages: ImagesDialect = {
  ...openaiImages,
  // It silently generates 8 when asked for more.
  batchSize: 8,
  request(input) {
    const { seed, steps, negative_prompt, ...parameters } = input.parameters
    const extra = {
      seed,
      negative_prompt,
      // Older servers read `steps`, newer ones `sample_params`.
      ...(steps === undefined ? {} : { steps, sample_params: { sample_steps: steps } }),
    }
    const given = JSON.stringify(extra)
    const plain = input.prompt.replaceAll(SDCPP_TAG, ' ')
    const prompt =
      given === '{}' ? plain : `${plain}<sd_cpp_extra_args>${given.replaceAll('<', '\\u003c')}</sd_cpp_extra_args>`
    return openaiImages.request({ ...input, prompt, parameters })
  },
}

export const sdcpp: Dialect = { images: sdcppImages }
