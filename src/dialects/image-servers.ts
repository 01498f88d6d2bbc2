import type { Dialect, ImagesDialect } from './dialect.ts'
import { generation, includeUsage, openaiEmbeddings, openaiImages, openaiSpeech } from './openai.ts'

/** LocalAI says `step` for steps and takes the negative prompt behind a bar. */
const localaiImages: ImagesDialect = {
  ...openaiImages,
  request(input) {
    const { steps, negative_prompt: negative, ...parameters } = input.parameters
    const prompt = typeof negative === 'string' ? `${input.prompt}|${negative}` : input.prompt
    const { path, body } = openaiImages.request({ ...input, prompt, parameters })
    return { path, body: { ...body, ...(steps === undefined ? {} : { step: steps }) } }
  },
}

export const localai: Dialect = {
  chat: generation('/chat/completions', includeUsage),
  completions: generation('/completions', includeUsage),
  embeddings: openaiEmbeddings,
  images: localaiImages,
  speech: openaiSpeech,
}

/** stable-diffusion.cpp's server: OpenAI's form, with its own arguments inside the prompt. */
const sdcppImages: ImagesDialect = {
  ...openaiImages,
  request(input) {
    const { seed, steps, negative_prompt, ...parameters } = input.parameters
    const extra = { seed, steps, negative_prompt }
    const given = Object.values(extra).some((value) => value !== undefined)
    const prompt = given
      ? `${input.prompt}<sd_cpp_extra_args>${JSON.stringify(extra)}</sd_cpp_extra_args>`
      : input.prompt
    return openaiImages.request({ ...input, prompt, parameters })
  },
}

export const sdcpp: Dialect = { images: sdcppImages }
