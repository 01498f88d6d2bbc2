import type { Deployment, Model } from '../../core/catalog.ts'
import { ApiError } from '../../core/errors.ts'
import type { EngineRequest, Job, ReadAnswer } from '../../core/job.ts'
import { noUsage } from '../../core/money/rating.ts'
import type { SpeechDialect, SpeechInput } from '../../dialects/dialect.ts'
import { operationOf, parsedJson } from '../engine-operation.ts'
import { engineForm } from './engine-form.ts'
import { readRecording, readRequest, type AudioForm, type MeasureAudio, type Recording } from './form.ts'
import { renderTranscript, toTranscript, transcriptType } from './transcript.ts'

type Task = SpeechInput['task']

/** The most that Whisper's decoder writes: 448 tokens for each window of 30 s. Other models write less. */
const CHARGED_TOKENS_PER_SECOND = 15

/** What each path does with a recording. */
export const audioTasks: Readonly<Record<string, Task>> = {
  '/audio/transcriptions': 'transcribe',
  '/audio/translations': 'translate',
}

/** POST /audio/transcriptions and /audio/translations: a form with a recording in, what was said out. */
export async function audioJob(
  endpoint: string,
  task: Task,
  form: AudioForm,
  model: Model,
  deployment: Deployment,
  measure: MeasureAudio,
): Promise<Job> {
  const recording = await readRecording(form, measure)
  const request = readRequest(form, model)
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
