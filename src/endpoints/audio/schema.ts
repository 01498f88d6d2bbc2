import Type, { type Static } from 'typebox'

/** The wire shapes of /audio/transcriptions and /audio/translations. Fields of a form are text; these are what it means. */

export const transcriptFormats = ['json', 'text', 'srt', 'verbose_json', 'vtt'] as const
export type TranscriptFormat = (typeof transcriptFormats)[number]

export const audioRequestSchema = Type.Object({
  file: Type.Unsafe<unknown>({
    type: 'string',
    format: 'binary',
    description: 'The recording: wav, mp3, m4a or mp4, ogg (Opus, Vorbis, FLAC), flac, or webm, told by its content.',
  }),
  model: Type.String({ minLength: 1, description: 'A slug of the catalog, or a short id.' }),
  language: Type.Optional(
    Type.String({
      pattern: '^[a-zA-Z]{2}$',
      expected: 'an ISO-639-1 code, such as en',
      description:
        'The spoken language as an ISO-639-1 code. Told, it is not guessed wrongly from a short or noisy clip.',
    }),
  ),
  prompt: Type.Optional(
    Type.String({ maxLength: 65_536, description: 'Words and spellings to expect, or the text of the part before.' }),
  ),
  response_format: Type.Optional(
    Type.Enum([...transcriptFormats], {
      description:
        'json (default) and text with every model; srt, vtt and verbose_json where it lists response_format.',
    }),
  ),
  temperature: Type.Optional(
    Type.Number({ minimum: 0, maximum: 1, description: '0 (default) to 1; higher is less literal.' }),
  ),
  timestamp_granularities: Type.Optional(
    Type.Array(Type.Enum(['word', 'segment']), {
      minItems: 1,
      maxItems: 2,
      description: 'Sent as timestamp_granularities[], with verbose_json only: segment (default), word.',
    }),
  ),
  stream: Type.Optional(Type.Boolean({ description: 'Only false: a transcript comes as a whole.' })),
})

export type AudioRequest = Static<typeof audioRequestSchema>

const { timestamp_granularities: granularities, ...others } = audioRequestSchema.properties
/** The same by the names of the form. */
export const audioFormSchema = Type.Object({ ...others, 'timestamp_granularities[]': granularities })

const segmentSchema = Type.Object({
  id: Type.Integer(),
  seek: Type.Integer(),
  start: Type.Number(),
  end: Type.Number(),
  text: Type.String(),
  tokens: Type.Array(Type.Integer()),
  temperature: Type.Number(),
  avg_logprob: Type.Number(),
  compression_ratio: Type.Number(),
  no_speech_prob: Type.Number(),
})
export type Segment = Static<typeof segmentSchema>

const wordSchema = Type.Object({ word: Type.String(), start: Type.Number(), end: Type.Number() })
export type Word = Static<typeof wordSchema>

export const audioResponseSchema = Type.Object({
  text: Type.String({ description: 'What was said. Everything below is of json, or of verbose_json.' }),
  usage: Type.Optional(
    Type.Object(
      { type: Type.Literal('duration'), seconds: Type.Number() },
      { description: 'json: the seconds that are billed.' },
    ),
  ),
  task: Type.Optional(Type.Enum(['transcribe', 'translate'], { description: 'verbose_json' })),
  language: Type.Optional(Type.String({ description: 'verbose_json: in English and small letters, such as german.' })),
  duration: Type.Optional(Type.Number({ description: 'verbose_json: seconds.' })),
  segments: Type.Optional(Type.Array(segmentSchema, { description: 'verbose_json' })),
  words: Type.Optional(Type.Array(wordSchema, { description: 'verbose_json with timestamp_granularities[]=word' })),
})
