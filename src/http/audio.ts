import type { Deployment, Model } from '../core/catalog.ts'
import { ApiError } from '../core/errors.ts'
import type { EngineRequest, Job, ReadAnswer } from '../core/job.ts'
import { isLanguageCode } from '../core/language-names.ts'
import { noUsage } from '../core/rating.ts'
import type { SpeechDialect, SpeechInput } from '../dialects/dialect.ts'
import type { ByteSource, Caller, MeasuredAudio, Spool } from '../ports.ts'
import { audioRequestSchema, type AudioRequest } from './audio-schema.ts'
import { engineForm } from './engine-form.ts'
import type { Exchange } from './exchange.ts'
import { resolveFor, runJob } from './inference.ts'
import { operationOf, parsedJson } from './operation.ts'
import { acceptedParameters, mistake, requireValid } from './parameters.ts'
import type { PublicParts } from './public-api.ts'
import { renderTranscript, toTranscript, transcriptType } from './transcript.ts'
import { withUpload, type Upload } from './upload.ts'

/** POST /audio/transcriptions and /audio/translations: a form with a recording in, what was said out. */

export interface AudioParts {
  readonly spool: Spool
  readonly maxUploadBytes: number
  measure(source: ByteSource): Promise<MeasuredAudio | undefined>
}

type Task = SpeechInput['task']

/** The most that Whisper's decoder writes: 448 tokens for each window of 30 s. Other models write less. */
const CHARGED_TOKENS_PER_SECOND = 15

export const audioTasks: Readonly<Record<string, Task>> = {
  '/audio/transcriptions': 'transcribe',
  '/audio/translations': 'translate',
}

export function audio(parts: PublicParts, path: string, task: Task) {
  const { spool, maxUploadBytes } = parts.audio
  return (exchange: Exchange, caller: Caller): Promise<void> =>
    withUpload(exchange, spool, maxUploadBytes, async (upload) => {
      const name = single(upload.fields, 'model')
      if (!name) throw missing('model', 'the slug of a model')
      const { model, deployment } = resolveFor(parts, path, name, caller)
      const recording = await readRecording(upload, parts.audio)
      const request = readRequest(upload, model)
      await runJob(parts, exchange, caller, audioJob(path, task, request, recording, model, deployment))
    })
}

interface Recording extends MeasuredAudio {
  readonly source: ByteSource
  readonly durationMs: number
}

function audioJob(
  endpoint: string,
  task: Task,
  request: AudioRequest,
  recording: Recording,
  model: Model,
  deployment: Deployment,
): Job {
  const dialect = operationOf(model, deployment, 'speech')
  if (task === 'translate' && dialect.transcribesOnly) {
    throw new ApiError('model_not_configured', `${model.id} has no engine for translation.`, { param: 'model' })
  }
  const { durationMs } = recording
  const words = request.timestamp_granularities?.includes('word') ?? false
  const { language, temperature, response_format: format = 'json' } = request
  const input: SpeechInput = {
    model: deployment.engine?.model ?? model.id,
    task,
    language,
    prompt: request.prompt,
    temperature,
    words,
    textOnly: false,
  }
  return {
    endpoint,
    model,
    deployment,
    cost: chargedTokens(durationMs, model, deployment),
    maxTokens: 0,
    likelyInputTokens: 0,
    media: { audioMs: durationMs },
    calls: [engineCall(dialect, input, recording)],
    answer: {
      kind: 'whole',
      read([body]): ReadAnswer | undefined {
        const answer = body && parsedJson(body.whole())
        if (dialect.isUnreadable?.(answer)) {
          throw new ApiError(
            'unsupported_content',
            'The engine cannot read the recording. Send it as wav, mp3 or flac, or see that it is whole.',
            { param: 'file' },
          )
        }
        const output = dialect.response(answer)
        if (!output) return undefined
        const transcript = toTranscript(output, { task, durationMs, language, temperature, words })
        return {
          usage: { ...noUsage, audioMs: durationMs },
          outputBytes: () => Buffer.byteLength(transcript.text),
          contentType: transcriptType(format),
          render: () => renderTranscript(transcript, format),
        }
      },
    },
  }
}

/** Segments are always asked for; a server that refuses them is asked for the text alone. */
function engineCall(dialect: SpeechDialect, input: SpeechInput, recording: Recording): EngineRequest {
  const { source, extension, contentType } = recording
  const call = (it: SpeechInput): EngineRequest => {
    const { path, fields } = dialect.request(it)
    return engineForm(path, fields, { source, name: `audio.${extension}`, contentType })
  }
  return {
    ...call(input),
    instead: ({ message }) => (dialect.offersTextOnly(message) ? call({ ...input, textOnly: true }) : undefined),
  }
}

function chargedTokens(durationMs: number, model: Model, deployment: Deployment): number {
  const cost = Math.ceil((durationMs / 1000) * CHARGED_TOKENS_PER_SECOND)
  const { tokenBudget } = deployment.limits
  if (cost <= tokenBudget) return cost
  const seconds = Math.floor(tokenBudget / CHARGED_TOKENS_PER_SECOND)
  throw new ApiError(
    'token_budget_exceeded',
    `The recording is longer than the ${seconds} s that ${model.id} admits at once. Split it, preferably at silence.`,
    { param: 'file' },
  )
}

async function readRecording({ file }: Upload, parts: AudioParts): Promise<Recording> {
  if (!file) throw missing('file', 'the recording, as a file')
  if (file.length === 0) throw new ApiError('invalid_value', 'The file is empty.', { param: 'file' })
  const measured = await parts.measure(file)
  if (!measured) {
    throw new ApiError(
      'unsupported_content',
      'The file is no audio that is supported. Send wav, mp3, m4a, ogg, flac or webm.',
      { param: 'file' },
    )
  }
  const { durationMs } = measured
  if (durationMs !== undefined) return { ...measured, durationMs, source: file }
  throw new ApiError(
    'invalid_value',
    `The length of the recording cannot be told: the ${measured.extension} file is damaged or holds no sound.`,
    { param: 'file' },
  )
}

/** What the fields of the form mean. An empty field is as good as none. */
function readRequest({ fields, file }: Upload, model: Model): AudioRequest {
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
    throw mistake('invalid_value', 'language', 'an ISO-639-1 code, such as en')
  }
  if (stream) {
    throw new ApiError('unsupported_value', 'A transcript comes as a whole: stream must be false.', { param: 'stream' })
  }
  if (granularity && format !== 'verbose_json') {
    throw new ApiError('invalid_value', 'timestamp_granularities[] goes with response_format verbose_json only.', {
      param: 'timestamp_granularities',
    })
  }
  acceptedParameters(request, audioRequestSchema.properties, alwaysAccepted(checked), model)
  return checked
}

/** What every model does, and values that ask for what happens anyway. */
function alwaysAccepted(request: AudioRequest): ReadonlySet<string> {
  const { response_format: format = 'json', temperature, timestamp_granularities: granularities } = request
  const names = new Set(['file', 'model', 'stream'])
  if (format === 'json' || format === 'text') names.add('response_format')
  if (temperature === 0) names.add('temperature')
  if (granularities?.every((it) => it === 'segment')) names.add('timestamp_granularities')
  return names
}

function single(fields: Upload['fields'], name: string): string | undefined {
  const values = fields.get(name) ?? []
  if (values.length > 1) throw new ApiError('invalid_value', `The field '${name}' is given twice.`, { param: name })
  return values[0] === '' ? undefined : values[0]
}

/** What is no number stays text, and is refused as that. */
function asNumber(text: string | undefined): number | string | undefined {
  return text !== undefined && /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text.trim()) ? Number(text) : text
}

function asBoolean(text: string | undefined): boolean | string | undefined {
  const lower = text?.trim().toLowerCase()
  return lower === 'true' || lower === '1' ? true : lower === 'false' || lower === '0' ? false : text
}

function missing(param: string, what: string): ApiError {
  return new ApiError('missing_required_parameter', `Missing required parameter: '${param}', ${what}.`, { param })
}
