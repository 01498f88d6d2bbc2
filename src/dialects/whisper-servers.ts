import type { Dialect } from './dialect.ts'
import { openaiSpeech, readSpeech } from './openai.ts'

/** faster-whisper behind speaches. */
export const speaches: Dialect = { speech: openaiSpeech }

/** whisper.cpp's own server: one path at the root, and a flag for the task. */
export const whispercpp: Dialect = {
  speech: {
    request: ({ task, language, prompt, temperature }) => ({
      path: '//inference',
      fields: {
        response_format: 'verbose_json',
        language: language ?? 'auto',
        ...(task === 'translate' ? { translate: 'true' } : {}),
        ...(prompt === undefined ? {} : { prompt }),
        ...(temperature === undefined ? {} : { temperature: String(temperature) }),
      },
    }),
    // It always knows the segments.
    offersTextOnly: () => false,
    response: readSpeech,
  },
}
