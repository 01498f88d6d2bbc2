import { Type, type Static } from 'typebox'
import { modelParameter } from '../request/shared-schema.ts'

/** The wire shapes of /audio/transcriptions and /audio/translations, with form fields converted from text. */

const transcriptFormats = ['json', 'text', 'srt', 'verbose_json', 'vtt'] as const
export type TranscriptFormat = (typeof transcriptFormats)[number]

export const audioRequestSchema = Type.Object({
  file: Type.Unsafe<unknown>({
    type: 'string',
    format: 'binary',
    description:
      'The recording: wav, mp3, m4a or mp4, ogg (Opus, Vorbis, FLAC), flac, or webm. The content decides, not the file name.',
  }),
  model: modelParameter,
  language: Type.Optional(
    Type.String({
      maxLength: 2,
      pattern: '^[a-zA-Z]{2}$',
      expected: 'an ISO-639-1 code, such as en',
      description:
        'The spoken language as an ISO-639-1 code. Without it the model guesses, and may be wrong about a short or noisy clip.',
    }),
  ),
  prompt: Type.Optional(
    Type.String({
      maxLength: 65_536,
      description: 'Words and spellings to expect, or the text of the preceding part.',
    }),
  ),
  response_format: Type.Optional(
    Type.Enum([...transcriptFormats], {
      description:
        'json (default) and text work with every model; srt, vtt and verbose_json with models that list response_format.',
    }),
  ),
  temperature: Type.Optional(
    Type.Number({ minimum: 0, maximum: 1, description: 'From 0 (default) to 1. Higher values are less literal.' }),
  ),
  timestamp_granularities: Type.Optional(
    Type.Array(Type.Enum(['word', 'segment']), {
      minItems: 1,
      maxItems: 2,
      description: 'Send it as timestamp_granularities[], and only with verbose_json: segment (default) or word.',
    }),
  ),
  stream: Type.Optional(Type.Boolean({ description: 'Transcripts cannot be streamed; only false is allowed.' })),
})

export type AudioRequest = Static<typeof audioRequestSchema>

const { timestamp_granularities: granularities, ...others } = audioRequestSchema.properties
/** The same with the field names of the form. */
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
export type TranscriptSegment = Static<typeof segmentSchema>

const wordSchema = Type.Object({ word: Type.String(), start: Type.Number(), end: Type.Number() })
export type TranscriptWord = Static<typeof wordSchema>

export const audioResponseSchema = Type.Object({
  text: Type.String({ description: 'The spoken text. The other fields depend on the response_format.' }),
  usage: Type.Optional(
    Type.Object(
      { type: Type.Literal('duration'), seconds: Type.Number() },
      { description: 'json: the billed seconds.' },
    ),
  ),
  task: Type.Optional(Type.Enum(['transcribe', 'translate'], { description: 'verbose_json' })),
  language: Type.Optional(
    Type.String({ description: 'verbose_json: the English name in lower case, such as german.' }),
  ),
  duration: Type.Optional(Type.Number({ description: 'verbose_json: seconds.' })),
  segments: Type.Optional(Type.Array(segmentSchema, { description: 'verbose_json' })),
  words: Type.Optional(Type.Array(wordSchema, { description: 'verbose_json with timestamp_granularities[]=word' })),
})

export const audioExample = {
  request: { file: 'recording.wav', model: 'usefulsensors/moonshine-tiny', response_format: 'json' },
  answer: { text: 'A weir is a low dam.', usage: { type: 'duration', seconds: 2.4 } },
  text: 'A weir is a low dam.\n',
  captions: 'WEBVTT\n\n00:00:00.000 --> 00:00:02.400\nA weir is a low dam.\n',
}
