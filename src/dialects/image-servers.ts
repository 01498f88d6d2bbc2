import type { Dialect, ImagesDialect } from './dialect.ts'
import { cohereRanking, generation, includeUsage, openaiEmbeddings, openaiImages, openaiSpeech } from './openai.ts'

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

export const localai: Dialect = {
  chat: generation('/chat/completions', includeUsage),
  completions: generation('/completions', includeUsage),
  embeddings: openaiEmbeddings,
  ranking: cohereRanking('/rerank', 'probability'),
  images: localaiImages,
  speech: openaiSpeech,
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
