import { ApiError } from './errors.ts'
import { sydneyDate, sydneyMidnight } from './money/sydney-time.ts'

/** A period of time as people write it: days in Sydney, or times with an offset. */

const DATE = /^(\d{4})-(\d{2})-(\d{2})$/

/** Four-digit years only: Date.parse also takes years that no calendar can show. */
const TIME = /^\d{4}-\d{2}-\d{2}T.*(Z|[+-]\d{2}:\d{2})$/

export interface PeriodText {
  readonly from?: string | null | undefined
  readonly to?: string | null | undefined
}

/** A date means that day in Sydney, and `to` includes the whole day. A time needs an offset and is taken literally. */
export function periodOf({ from, to }: PeriodText): { from: number; to: number } {
  return {
    from: from ? instant('from', from, 0) : 0,
    to: to ? instant('to', to, 1) : Number.MAX_SAFE_INTEGER,
  }
}

/** A date means the end of that day in Sydney. */
export function endOf(name: string, text: string): number {
  return instant(name, text, 1)
}

function instant(name: string, text: string, daysAfter: number): number {
  const date = DATE.exec(text)
  const at = date ? midnightOf(date, daysAfter) : TIME.test(text) ? Date.parse(text) : Number.NaN
  // No row is older than 1970.
  if (!Number.isNaN(at)) return Math.max(0, at)
  throw new ApiError(
    'invalid_value',
    `'${name}' must be a date such as 2026-11-15, or a time such as 2026-11-15T09:00:00Z.`,
    {
      param: name,
    },
  )
}

/** NaN for a date that does not exist, such as 30 February, which would otherwise overflow into the next month. */
function midnightOf([text, year, month, day]: RegExpExecArray, daysAfter: number): number {
  const isReal = sydneyDate(sydneyMidnight(Number(year), Number(month), Number(day))) === text
  return isReal ? sydneyMidnight(Number(year), Number(month), Number(day) + daysAfter) : Number.NaN
}
