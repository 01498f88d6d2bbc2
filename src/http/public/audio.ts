import { modelIn, type MeasureAudio } from '../../endpoints/audio/form.ts'
import { audioJob } from '../../endpoints/audio/job.ts'
import type { SpeechInput } from '../../dialects/dialect.ts'
import type { Caller } from '../../ports/accounts.ts'
import type { Spool } from '../../ports/uploads.ts'
import type { Exchange } from '../exchange.ts'
import { withUpload } from '../upload.ts'
import { resolveFor, runJob } from './inference.ts'
import type { PublicParts } from './public-api.ts'

/** The audio endpoints: form → model → endpoint fits → job → pipeline. */

export interface AudioParts {
  readonly spool: Spool
  readonly maxUploadBytes: number
  readonly measure: MeasureAudio
}

export function audio(parts: PublicParts, path: string, task: SpeechInput['task']) {
  const { spool, maxUploadBytes, measure } = parts.audio
  return (exchange: Exchange, caller: Caller): Promise<void> =>
    withUpload(exchange, spool, maxUploadBytes, async (upload) => {
      const { model, deployment } = resolveFor(parts, path, modelIn(upload), caller)
      await runJob(parts, exchange, caller, await audioJob(path, task, upload, model, deployment, measure))
    })
}
