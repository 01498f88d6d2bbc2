import type { Job, Price } from '../../engines/job.ts'
import type { PicoAud } from '../../shared/money/money.ts'
import { rate } from '../../billing/rating/rating.ts'
import { heldUsage } from './usage-bounds.ts'

/** The most a request is expected to cost. A spend limit reserves it while the request runs. */
export function maximumCharge(job: Job, { rates }: Price): PicoAud {
  const cachedRate = rates.cachedInputPerToken ?? 0n
  // Cached input normally costs less, but an operator may configure the opposite.
  const inputPerToken = rates.inputPerToken > cachedRate ? rates.inputPerToken : cachedRate
  return rate(heldUsage(job), { ...rates, inputPerToken, cachedInputPerToken: null })
}
