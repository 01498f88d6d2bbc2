import { divideHalfUp, type PicoAud } from '../../shared/money/money.ts'
import type { Month } from '../../shared/money/sydney-time.ts'

/** How fast money is spent, and what the month will cost at that pace. */
export interface Pace {
  /** The whole days that the pace is computed from. */
  readonly days: number
  /** Per day of 24 hours, over those days; undefined before the first is over. */
  readonly perDay: PicoAud | undefined
  /** What was spent, plus the rest of the month at this pace; undefined until there are enough days. */
  readonly forecast: PicoAud | undefined
  /** When a limit will be reached at this pace; undefined if it already is, or will not be this month. */
  readonly reachesLimitAt: number | undefined
}

const DAY_MS = 86_400_000
/** Fewer days are not representative: a weekend, or a first try. */
const FORECAST_DAYS = 3

/** `recent`: what was spent in the last `ms`. */
export function paceOf(
  month: Month,
  now: number,
  spent: PicoAud,
  recent: { readonly amount: PicoAud; readonly ms: number },
  limit: PicoAud | undefined,
): Pace {
  const days = Math.max(0, Math.floor(recent.ms / DAY_MS))
  if (days === 0) return { days, perDay: undefined, forecast: undefined, reachesLimitAt: undefined }
  const perDay = divideHalfUp(recent.amount * BigInt(DAY_MS), BigInt(Math.round(recent.ms)))
  if (days < FORECAST_DAYS) return { days, perDay, forecast: undefined, reachesLimitAt: undefined }
  const left = BigInt(Math.max(0, month.to - now))
  const forecast = spent + divideHalfUp(perDay * left, BigInt(DAY_MS))
  const isReached = limit !== undefined && perDay > 0n && limit > spent && forecast >= limit
  return {
    days,
    perDay,
    forecast,
    reachesLimitAt: isReached ? now + Number(((limit - spent) * BigInt(DAY_MS)) / perDay) : undefined,
  }
}
