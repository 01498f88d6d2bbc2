import type { TurnClient } from '../../shared/turns.ts'
import { modelIn } from '../audio/form.ts'
import { audioJob, type SpeechTask } from '../audio/job.ts'
import { audioExample, audioFormSchema, audioResponseSchema } from '../audio/schema.ts'
import type { ByteSource, MeasuredAudio, Spool } from '../../server/uploads/uploads.ts'
import { textSchema } from '../../server/common-schema.ts'
import { withUpload } from '../../server/uploads/upload.ts'
import { keyRoute, type KeyRoute } from '../../server/key-route.ts'
import { inferenceErrors, queueHeaders, resolveFor, runJob, type InferenceEndpoint, type JobParts } from './run-job.ts'

/** The audio endpoints: form → model → endpoint check → job → pipeline. */

export interface AudioParts extends JobParts {
  readonly audio: {
    readonly spool: Spool
    readonly maxUploadBytes: number
    measure(client: TurnClient, source: ByteSource): Promise<MeasuredAudio | undefined>
  }
}

interface AudioEndpoint extends InferenceEndpoint {
  readonly id: string
  readonly summary: string
  readonly description: string
  readonly task: SpeechTask
}

const audioEndpoints: readonly AudioEndpoint[] = [
  {
    path: '/audio/transcriptions',
    id: 'audioTranscriptions',
    summary: 'Transcription',
    description: 'Returns what is said in a recording, in the spoken language.',
    task: 'transcribe',
  },
  {
    path: '/audio/translations',
    id: 'audioTranslations',
    summary: 'Translation of speech',
    description: 'Returns what is said in a recording, in English, whatever the spoken language.',
    task: 'translate',
  },
]

const audioRules =
  'Every model takes file, model, and response_format json or text. language, prompt, temperature, timestamp_granularities and the other formats need a model that lists them in supported_parameters (response_format for srt, vtt and verbose_json). Speakers are not told apart. The file may be wav, mp3, m4a, ogg, flac or webm. Its length is measured before the request is queued, by decoding it, and is what is billed; in the queue, each second counts as 15 tokens, and the prompt as its text. A file over the limit (25 MiB unless the operator changed it) gets 413: split long recordings, preferably at silence.'

export function audioRoutes(parts: AudioParts): readonly KeyRoute[] {
  const { spool, maxUploadBytes } = parts.audio
  return audioEndpoints.map((endpoint) => {
    const { path, id, summary, description, task } = endpoint
    return keyRoute({
      method: 'POST',
      path,
      endpoint: path,
      id,
      summary,
      description: `${description} ${audioRules}`,
      request: { contentType: 'multipart/form-data', schema: audioFormSchema, example: audioExample.request },
      response: {
        status: 200,
        content: {
          'application/json': { schema: audioResponseSchema, example: audioExample.answer },
          'text/plain': { schema: textSchema, example: audioExample.text },
          'text/vtt': { schema: textSchema, example: audioExample.captions },
        },
        headers: queueHeaders,
      },
      errors: inferenceErrors.filter((code) => code !== 'invalid_json'),
      answer: ({ exchange, caller }) =>
        withUpload(exchange, spool, maxUploadBytes, async (upload) => {
          const { model, deployment } = resolveFor(parts, exchange, endpoint, modelIn(upload), caller)
          const measure = (source: ByteSource) => parts.audio.measure(exchange, source)
          await runJob(parts, exchange, caller, await audioJob(path, task, upload, model, deployment, measure))
        }),
    })
  })
}
