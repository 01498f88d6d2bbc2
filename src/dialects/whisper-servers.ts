import type { Dialect } from './dialect.ts'
import { openaiSpeech, readSpeech } from './openai.ts'
import { asRecord, type JsonRecord } from './reading.ts'

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
    refusesSegments: () => false,
    response(body) {
      const heard = readSpeech(body)
      if (!heard?.words || withoutSpaces.has(heard.language ?? '')) return heard
      return { ...heard, words: joinedTokens(heard.words) }
    },
    // "failed to read audio data" comes with the status 200; without --convert it reads wav, mp3, flac and vorbis.
    isUnreadable: (body) => typeof asRecord(body)['error'] === 'string',
  },
}

/** Languages that put no spaces between words: each token stands for itself, as OpenAI's Whisper has it. */
const withoutSpaces = new Set(['chinese', 'japanese', 'thai', 'lao', 'myanmar', 'cantonese'])

/** What it calls words are tokens: one that does not begin with a space goes on with the word before it. */
function joinedTokens(tokens: readonly JsonRecord[]): readonly JsonRecord[] {
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
