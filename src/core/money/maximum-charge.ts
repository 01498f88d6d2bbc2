import type { Job, Price } from '../job.ts'
import type { PicoAud } from './money.ts'
import { noUsage, rate } from './rating.ts'

/**
 * The most a request can come to, whatever the engine makes of it: what is held of a spend limit meanwhile.
 * No tokenizer makes more tokens of a text than it has bytes, and what surrounds it in the request outweighs
 * a chat template; nor does a model read more than its context.
 */
export function maximumCharge(job: Job, { rates }: Price): PicoAud {
  const bytes = job.calls.reduce((sum, { body }) => sum + body.length, 0)
  const cachedRate = rates.cachedInputPerToken ?? 0n
  const dearest = { ...rates, inputPerToken: rates.inputPerToken > cachedRate ? rates.inputPerToken : cachedRate }
  return rate(
    {
      ...noUsage,
      inputTokens: job.maxTokens > 0 ? Math.min(bytes, job.model.contextLength) : bytes,
      outputTokens: job.maxTokens,
      images: job.media?.images ?? 0,
      audioMs: job.media?.audioMs ?? 0,
    },
    { ...dearest, cachedInputPerToken: null },
  )
}
