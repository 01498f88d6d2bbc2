import type { Dialect } from './dialect.ts'
import { openaiSpeech, readSpeech } from './openai.ts'
import { asRecord, type JsonRecord } from './reading.ts'

/** speaches, a server for faster-whisper. */
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
    // Every version supports segments.
    refusesSegments: () => false,
    response(body) {
      const output = readSpeech(body)
      if (!output?.words || withoutSpaces.has(output.language ?? '')) return output
      return { ...output, words: joinTokens(output.words) }
    },
    // It answers "failed to read audio data" with status 200. Without --convert it reads wav, mp3, flac and vorbis.
    isUnreadable: (body) => typeof asRecord(body)['error'] === 'string',
  },
}

/** Languages without spaces between words. Each token counts as a word, as in OpenAI's Whisper. */
const withoutSpaces = new Set(['chinese', 'japanese', 'thai', 'lao', 'myanmar', 'cantonese'])

/** What it calls words are tokens. One that does not start with a space continues the previous word. */
function joinTokens(tokens: readonly JsonRecord[]): readonly JsonRecord[] {
  const words: JsonRecord[] = []
  for (const token of tokens) {
    const text = String(token['word'])
    const last = words.at(-1)
    if (last && !text.startsWith(' '))
      words.splice(-1, 1, { ...last, word: `${String(last['word'])}${text}`, end: token['end'] })
    else words.push(token)
  }
  return words
}
