import { divideHalfUp, type PicoAud } from './money.ts'
import type { Month } from './sydney-time.ts'

/** How fast money is spent, and what the month will come to if that goes on. */
export interface Pace {
  /** The whole days that were looked at. */
  readonly days: number
  /** For a day of 24 hours, over those days; undefined before the first is over. */
  readonly perDay: PicoAud | undefined
  /** What was spent, and the rest of the month at this pace; undefined before there are days enough to say. */
  readonly forecast: PicoAud | undefined
  /** When a limit that is not reached yet will be, at this pace; undefined if not in this month. */
  readonly reachesLimitAt: number | undefined
}

const DAY_MS = 86_400_000
/** Fewer days say nothing about the others: think of a weekend, or of a first try. */
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
