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

const withoutBars = (text: string): string => text.replaceAll('|', ' ')

/** LocalAI says `step` for steps and takes the negative prompt behind a bar: no other bar may reach it. */
const localaiImages: ImagesDialect = {
  ...openaiImages,
  request(input) {
    const { steps, negative_prompt: negative, ...parameters } = input.parameters
    const wanted = withoutBars(input.prompt)
    const prompt = typeof negative === 'string' ? `${wanted}|${withoutBars(negative)}` : wanted
    const { path, body } = openaiImages.request({ ...input, prompt, parameters })
    return { path, body: { ...body, ...(steps === undefined ? {} : { step: steps }) } }
  },
}

/** Its usage counts words, and as the prompt's those of the query alone. Weir's own estimate is nearer. */
const localaiRanking: RankingDialect = {
  ...plainRanking('probability'),
  response(body, headers) {
    const output = plainRanking('probability').response(body, headers)
    return output && { ...output, inputTokens: undefined }
  },
}

/** No recording ends later, in seconds; in nanoseconds, none so early. */
const MOST_SECONDS = 1_000_000

/** It has no path for translations, and tells times in nanoseconds. */
const localaiSpeech: SpeechDialect = {
  ...openaiSpeech,
  transcribesOnly: true,
  response(body) {
    const heard = readSpeech(body)
    if (!heard?.segments?.some((segment) => Number(segment['end']) > MOST_SECONDS)) return heard
    return { ...heard, segments: heard.segments.map(inSeconds), words: heard.words?.map(inSeconds) }
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
 * stable-diffusion.cpp's server: OpenAI's form, with its own arguments inside the prompt. It takes the first
 * it finds, so a caller's own must not get there: they would pass by every check.
 */
const sdcppImages: ImagesDialect = {
  ...openaiImages,
  // It makes 8 of any larger number, and says nothing.
  batchSize: 8,
  request(input) {
    const { seed, steps, negative_prompt, ...parameters } = input.parameters
    const extra = {
      seed,
      negative_prompt,
      // Older servers say steps, newer ones say it inside.
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
