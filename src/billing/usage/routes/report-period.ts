import { periodOf } from '../../../shared/period.ts'
import { ApiError } from '../../../shared/errors.ts'
import { sydneyDay } from '../../../shared/money/sydney-time.ts'
import type { TimeQuery } from '../report-store.ts'
import type { UsageFilter } from '../../../ledger/rows.ts'

/** The scope of a report: whole days in Sydney, by hour or by day, optionally for one model or key. */

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const HOURS_UP_TO_MS = 3 * DAY_MS
const PERIOD_MS_MAX = 400 * DAY_MS

/** How many models, keys or workspaces a report shows separately. */
export const GROUPS_SHOWN = 6

export interface PeriodParameters {
  readonly from: string
  readonly to: string
}

export interface FilterParameters {
  readonly model?: string | undefined
  readonly key?: string | undefined
}

export interface Period {
  readonly from: number
  readonly to: number
  readonly unit: TimeQuery['unit']
}

export function reportPeriod(parameters: PeriodParameters): Period {
  for (const name of ['from', 'to'] as const) {
    if (!/^\d{4}-\d{2}-\d{2}$/.test(parameters[name])) {
      throw new ApiError('invalid_value', `'${name}' must be a date such as 2026-11-16.`, { param: name })
    }
  }
  const { from, to } = periodOf(parameters)
  if (to <= from || to - from > PERIOD_MS_MAX) {
    throw new ApiError('invalid_value', "'to' must be the same day as 'from' or up to 400 days later.", { param: 'to' })
  }
  return { from, to, unit: to - from <= HOURS_UP_TO_MS ? 'hour' : 'day' }
}

/** Where the next one begins. */
export const nextStart = (at: number, unit: Period['unit']): number =>
  // A day has 23 to 25 hours.
  unit === 'hour' ? at + HOUR_MS : sydneyDay(at + 26 * HOUR_MS)

/** The beginning of every hour or day. */
export function timesIn({ from, to, unit }: Period): readonly number[] {
  const times: number[] = []
  for (let at = from; at < to; at = nextStart(at, unit)) times.push(at)
  return times
}

/** The last of these times that is not after `at`. Much faster than a calendar computation for each of many rows. */
export function startAmong(times: readonly number[], at: number): number {
  let first = 0
  for (let end = times.length; end - first > 1;) {
    const middle = (first + end) >> 1
    if ((times[middle] ?? 0) <= at) first = middle
    else end = middle
  }
  return times[first] ?? at
}

export const filterOf = ({ model, key }: FilterParameters): UsageFilter => ({
  model: model || undefined,
  keyId: key || undefined,
})
