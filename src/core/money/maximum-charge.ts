import type { Job, Price } from '../job.ts'
import type { PicoAud } from './money.ts'
import { rate } from './rating.ts'
import { heldUsage } from './usage-bounds.ts'

/** The most a request is expected to cost. A spend limit holds it while the request runs. */
export function maximumCharge(job: Job, { rates }: Price): PicoAud {
  const cachedRate = rates.cachedInputPerToken ?? 0n
  // Cached input normally costs less, but nothing stops an operator from writing the opposite.
  const inputPerToken = rates.inputPerToken > cachedRate ? rates.inputPerToken : cachedRate
  return rate(heldUsage(job), { ...rates, inputPerToken, cachedInputPerToken: null })
}
