import { HostError, parameterError } from '../runtime/host-error.ts'
import type { SpeechRequest } from '../runtime/engine-model.ts'
import type { JsonObject, JsonValue } from '../runtime/json-value.ts'
import { readForm, type HostForm } from './body.ts'
import { optionalString, required, requiredString } from './fields.ts'
import { abilityOf, type HostCall } from './host-call.ts'
import { sendJson } from './reply.ts'
import { verboseTranscript } from './verbose-transcript.ts'

/** POST /v1/audio/transcriptions and /v1/audio/translations. The service renders all formats from verbose_json. */
export async function speechToText(call: HostCall, task: SpeechRequest['task']): Promise<void> {
  const form = await readForm(call.request)
  const slug = requiredString(form.fields, 'model')
  const request = readSpeechRequest(form, task)
  const speech = await call.models.use(slug, (model) => abilityOf(model, 'transcribe', slug)(request, call.signal))
  sendJson(call.response, 200, verboseTranscript(speech, task))
}

function readSpeechRequest({ fields, file }: HostForm, task: SpeechRequest['task']): SpeechRequest {
  if (optionalString(fields, 'response_format') !== 'verbose_json') {
    throw parameterError('invalid_value', 'response_format', 'verbose_json')
  }
  refuseWordTimes(fields['timestamp_granularities[]'])
  const language = optionalString(fields, 'language')
  const prompt = optionalString(fields, 'prompt')
  return {
    audio: required(file, 'file'),
    task,
    temperature: readTemperature(fields),
    ...(language === undefined ? {} : { language }),
    ...(prompt === undefined ? {} : { prompt }),
  }
}

function refuseWordTimes(granularities: JsonValue | undefined): void {
  if (![granularities].flat().includes('word')) return
  throw new HostError('unsupported_value', "This model times segments, not words. Leave out the granularity 'word'.", {
    param: 'timestamp_granularities',
  })
}

function readTemperature(fields: JsonObject): number {
  const temperature = Number(optionalString(fields, 'temperature') ?? 0)
  if (temperature >= 0 && temperature <= 1) return temperature
  throw parameterError('invalid_value', 'temperature', 'a number from 0 to 1')
}
