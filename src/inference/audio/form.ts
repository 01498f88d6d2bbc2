import type { Model } from '../../catalog/model.ts'
import { ApiError } from '../../shared/errors.ts'
import { isLanguageCode } from '../../shared/language-names.ts'
import { invalidParameter, requireValid } from '../../shared/json/schema-check.ts'
import type { SupportByName } from '../../engines/dialects/parameter-support.ts'
import type { ByteSource, MeasuredAudio } from '../../server/uploads/uploads.ts'
import { acceptedParameters } from '../request/parameters.ts'
import { audioRequestSchema, type AudioRequest } from './schema.ts'

/** The form of an audio request: its fields as text, and the recording. */
export interface AudioForm {
  /** Values by field name, in the order they were sent. */
  readonly fields: ReadonlyMap<string, readonly string[]>
  /** The field `file`; undefined when the form has none. */
  readonly file: ByteSource | undefined
}

export type MeasureAudio = (source: ByteSource) => Promise<MeasuredAudio | undefined>

export interface MeasuredRecording extends MeasuredAudio {
  readonly source: ByteSource
  readonly durationMs: number
}

/** The model that the form names. */
export function modelIn({ fields }: AudioForm): string {
  const name = single(fields, 'model')
  if (!name) throw missing('model', 'the slug of a model')
  return name
}

export async function readRecording({ file }: AudioForm, measure: MeasureAudio): Promise<MeasuredRecording> {
  if (!file) throw missing('file', 'the audio file')
  if (file.length === 0) throw new ApiError('invalid_value', 'The file is empty.', { param: 'file' })
  const measured = await measure(file)
  if (!measured) {
    throw new ApiError(
      'unsupported_content',
      'The file is not in a supported audio format. Send wav, mp3, m4a, ogg, flac or webm.',
      { param: 'file' },
    )
  }
  const { durationMs } = measured
  if (durationMs !== undefined) return { ...measured, durationMs, source: file }
  throw new ApiError(
    'invalid_value',
    `The length of the recording cannot be determined: the ${measured.extension} file is damaged, or has no sound in a supported codec.`,
    { param: 'file' },
  )
}

/** Converts and checks the fields of the form. An empty field counts as missing. */
export function readRequest({ fields, file }: AudioForm, model: Model, support: SupportByName): AudioRequest {
  const granularities = ['timestamp_granularities[]', 'timestamp_granularities'].flatMap(
    (name) => fields.get(name) ?? [],
  )
  const request = {
    file: file && '',
    model: single(fields, 'model'),
    language: single(fields, 'language')?.toLowerCase(),
    prompt: single(fields, 'prompt'),
    response_format: single(fields, 'response_format'),
    temperature: asNumber(single(fields, 'temperature')),
    timestamp_granularities: granularities.length > 0 ? [...new Set(granularities)] : undefined,
    stream: asBoolean(single(fields, 'stream')),
  }
  requireValid(audioRequestSchema, request)
  const checked = request as AudioRequest
  const { language, stream, response_format: format = 'json', timestamp_granularities: granularity } = checked
  if (language !== undefined && !isLanguageCode(language)) {
    throw invalidParameter('invalid_value', 'language', 'an ISO-639-1 code, such as en')
  }
  if (stream) {
    throw new ApiError('unsupported_value', 'Transcripts cannot be streamed. Leave out stream.', { param: 'stream' })
  }
  if (granularity && format !== 'verbose_json') {
    throw new ApiError(
      'invalid_value',
      'timestamp_granularities[] is only allowed with response_format verbose_json.',
      {
        param: 'timestamp_granularities',
      },
    )
  }
  acceptedParameters(request, audioRequestSchema.properties, alwaysAccepted(checked), model, support)
  return checked
}

/** What every model supports, and values that ask for the default behaviour. */
function alwaysAccepted(request: AudioRequest): ReadonlySet<string> {
  const { response_format: format = 'json', temperature, timestamp_granularities: granularities } = request
  const names = new Set(['file', 'model', 'stream'])
  if (format === 'json' || format === 'text') names.add('response_format')
  if (temperature === 0) names.add('temperature')
  if (granularities?.every((it) => it === 'segment')) names.add('timestamp_granularities')
  return names
}

function single(fields: AudioForm['fields'], name: string): string | undefined {
  const values = fields.get(name) ?? []
  if (values.length > 1)
    throw new ApiError('invalid_value', `The field '${name}' appears more than once.`, { param: name })
  return values[0] === '' ? undefined : values[0]
}

/** Text that is not a number stays text, so that the schema check refuses it. */
function asNumber(text: string | undefined): number | string | undefined {
  return text !== undefined && /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(text.trim()) ? Number(text) : text
}

function asBoolean(text: string | undefined): boolean | string | undefined {
  const lower = text?.trim().toLowerCase()
  return lower === 'true' || lower === '1' ? true : lower === 'false' || lower === '0' ? false : text
}

function missing(param: string, what: string): ApiError {
  return new ApiError('missing_required_parameter', `Missing required parameter: '${param}', ${what}.`, { param })
}
