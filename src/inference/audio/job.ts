import type { Deployment, Model } from '../../catalog/model.ts'
import { ApiError } from '../../shared/errors.ts'
import type { EngineRequest, Job } from '../../engines/job.ts'
import { textTokens } from '../../shared/tokens/token-estimate.ts'
import type { SpeechDialect, SpeechInput } from '../../engines/dialects/dialect.ts'
import { operationOf, supportOf } from '../request/engine-operation.ts'
import { audioAnswer } from './answer.ts'
import { engineForm } from './engine-form.ts'
import { readRecording, readRequest, type AudioForm, type MeasureAudio, type MeasuredRecording } from './form.ts'

export type SpeechTask = SpeechInput['task']

/** The most tokens that Whisper generates: 448 for each window of 30 s. Other models generate fewer. */
const CHARGED_TOKENS_PER_SECOND = 15

/** POST /audio/transcriptions and /audio/translations: a form with a recording in, a transcript out. */
export async function audioJob(
  endpoint: string,
  task: SpeechTask,
  form: AudioForm,
  model: Model,
  deployment: Deployment,
  measure: MeasureAudio,
): Promise<Job> {
  const recording = await readRecording(form, measure)
  const request = readRequest(form, model, supportOf(deployment, 'speech'))
  const dialect = operationOf(model, deployment, 'speech')
  if (task === 'translate' && dialect.transcribesOnly) {
    throw new ApiError(
      'model_not_configured',
      `${model.id} has no engine for translation. The operator has to choose another one in the catalog.`,
      { param: 'model' },
    )
  }
  const { durationMs, isClaimed } = recording
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
    tier: 'default',
    endpoint,
    model,
    deployment,
    cost: chargedTokens(durationMs, model, deployment) + promptTokens(request.prompt ?? '', model),
    maxTokens: 0,
    // Audio is billed by its length alone.
    maxInputTokens: 0,
    heldInputTokens: 0,
    likelyInputTokens: 0,
    media: { audioMs: durationMs },
    calls: [engineCall(dialect, input, recording)],
    answer: audioAnswer(dialect, { task, durationMs, language, temperature, words, format, isClaimed }),
  }
}

/** Asks for segments; a server that refuses them is asked for the text alone. */
function engineCall(dialect: SpeechDialect, input: SpeechInput, recording: MeasuredRecording): EngineRequest {
  const { source, extension, contentType } = recording
  const call = (it: SpeechInput): EngineRequest => {
    const { path, fields } = dialect.request(it)
    return engineForm(path, fields, { source, name: `audio.${extension}`, contentType })
  }
  return {
    ...call(input),
    fallback: ({ message }) => (dialect.refusesSegments(message) ? call({ ...input, textOnly: true }) : undefined),
  }
}

/** The prompt is read before the recording. The model cannot read more than its context. */
function promptTokens(prompt: string, { contextLength, tokenizer }: Model): number {
  return Math.min(textTokens(prompt, tokenizer).charged, contextLength)
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
