import { divideHalfUp, type PicoAud } from './money.ts'
import type { Month } from './sydney-time.ts'

/** How fast money is spent, and what the month will come to if that goes on. */
export interface Pace {
  /** For a day of 24 hours, over the last days that were looked at. */
  readonly perDay: PicoAud
  /** What was spent, and the rest of the month at this pace. */
  readonly forecast: PicoAud
  /** When a limit is reached at this pace; undefined if not in this month. */
  readonly reachesLimitAt: number | undefined
}

const DAY_MS = 86_400_000

/** `recent`: what was spent in the last `recentMs`. */
export function paceOf(
  month: Month,
  now: number,
  spent: PicoAud,
  recent: { readonly amount: PicoAud; readonly ms: number },
  limit: PicoAud | undefined,
): Pace {
  const perDay = recent.ms > 0 ? divideHalfUp(recent.amount * BigInt(DAY_MS), BigInt(Math.round(recent.ms))) : 0n
  const left = BigInt(Math.max(0, month.to - now))
  const forecast = spent + divideHalfUp(perDay * left, BigInt(DAY_MS))
  const isReached = limit !== undefined && perDay > 0n && limit > spent && forecast >= limit
  return {
    perDay,
    forecast,
    reachesLimitAt: isReached ? now + Number(((limit - spent) * BigInt(DAY_MS)) / perDay) : undefined,
  }
}
