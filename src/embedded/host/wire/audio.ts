import { EngineError, invalidValue } from '../runtime/engine-model.ts'
import type { SpeechRequest, Transcript } from '../runtime/engine-model.ts'
import { languageName } from './languages.ts'
import { readBody } from './body.ts'
import { ability } from './exchange.ts'
import type { Exchange } from './exchange.ts'
import { optionalString, required, requiredString } from './fields.ts'
import { parseMultipart } from './multipart.ts'
import { sendJson, sendText } from './reply.ts'
import { toSrt, toVerboseJson, toVtt, transcriptText } from './transcript-formats.ts'

/** POST /v1/audio/transcriptions and /v1/audio/translations */
export async function speechToText(exchange: Exchange, task: SpeechRequest['task']): Promise<void> {
  const { request, signal, models } = exchange
  const form = parseMultipart(await readBody(request), request.headers['content-type'])
  const slug = requiredString(form.fields, 'model')
  const audio = required(form.files['file'], 'file')
  const format = optionalString(form.fields, 'response_format') || 'json'
  const reply = replies[format]
  if (!reply)
    throw invalidValue('response_format', `'response_format' must be one of ${Object.keys(replies).join(', ')}.`)
  refuseWordTimes(form.fields['timestamp_granularities[]'])
  const language = readLanguage(optionalString(form.fields, 'language'))
  const prompt = optionalString(form.fields, 'prompt')
  const transcript = await models.use(slug, (model) =>
    ability(
      model,
      'transcribe',
      slug,
    )(
      {
        audio,
        task,
        temperature: readTemperature(optionalString(form.fields, 'temperature')),
        ...(language === undefined ? {} : { language }),
        ...(prompt === undefined ? {} : { prompt }),
      },
      signal,
    ),
  )
  reply(exchange, transcript, task)
}

const replies: Record<string, (exchange: Exchange, transcript: Transcript, task: SpeechRequest['task']) => void> = {
  json: ({ response }, transcript) =>
    sendJson(response, 200, {
      text: transcriptText(transcript),
      usage: { type: 'duration', seconds: transcript.durationSeconds },
    }),
  text: ({ response }, transcript) =>
    sendText(response, 200, 'text/plain; charset=utf-8', `${transcriptText(transcript)}\n`),
  srt: ({ response }, transcript) => sendText(response, 200, 'text/plain; charset=utf-8', toSrt(transcript)),
  vtt: ({ response }, transcript) => sendText(response, 200, 'text/vtt; charset=utf-8', toVtt(transcript)),
  verbose_json: ({ response }, transcript, task) => sendJson(response, 200, toVerboseJson(transcript, task)),
}

function readLanguage(language: string | undefined): string | undefined {
  if (language === undefined || language === '') return undefined
  const code = language.toLowerCase()
  if (languageName(code) === undefined)
    throw invalidValue('language', `'${language}' is not a language code of this model.`)
  return code
}

function refuseWordTimes(granularities: unknown): void {
  if (![granularities].flat().includes('word')) return
  throw new EngineError(
    400,
    'unsupported_value',
    'This engine gives times of segments, not of words.',
    'timestamp_granularities',
  )
}

function readTemperature(text: string | undefined): number {
  const temperature = text === undefined || text === '' ? 0 : Number(text)
  if (!(temperature >= 0 && temperature <= 1)) {
    throw new EngineError(400, 'invalid_value', "'temperature' must be between 0 and 1.", 'temperature')
  }
  return temperature
}
