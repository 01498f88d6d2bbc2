import type { Job, Price } from '../job.ts'
import type { PicoAud } from './money.ts'
import { noUsage, rate } from './rating.ts'

/**
 * The most a request can cost, whatever the engine does with it. It is reserved against the spend limit while the
 * request runs. A text never has more tokens than bytes, the JSON around it is larger than what a chat template adds,
 * and a model reads no more than its context.
 */
export function maximumCharge(job: Job, { rates }: Price): PicoAud {
  const bytes = job.calls.reduce((sum, { body }) => sum + body.length, 0)
  const cachedRate = rates.cachedInputPerToken ?? 0n
  const highest = { ...rates, inputPerToken: rates.inputPerToken > cachedRate ? rates.inputPerToken : cachedRate }
  return rate(
    {
      ...noUsage,
      inputTokens: job.maxTokens > 0 ? Math.min(bytes, job.model.contextLength) : bytes,
      outputTokens: job.maxTokens,
      images: job.media?.images ?? 0,
      audioMs: job.media?.audioMs ?? 0,
    },
    { ...highest, cachedInputPerToken: null },
  )
}
