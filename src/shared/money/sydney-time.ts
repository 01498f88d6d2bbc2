/** Billing days and months begin at midnight in Sydney, daylight saving included. */
const format = new Intl.DateTimeFormat('en-CA', {
  timeZone: 'Australia/Sydney',
  hourCycle: 'h23',
  year: 'numeric',
  month: '2-digit',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
})

/** Unix ms of midnight in Sydney. `month` (from 1) and `day` may overflow, as in Date.UTC. */
export function sydneyMidnight(year: number, month: number, day: number): number {
  const wall = Date.UTC(year, month - 1, day)
  // The first offset may be from the wrong side of a daylight saving change; the second one is right.
  const guess = wall - offsetAt(wall)
  return wall - offsetAt(guess)
}

/** The date in Sydney, such as "2026-11-15". */
export function sydneyDate(at: number): string {
  const part = partsAt(at)
  return `${part['year']}-${part['month']}-${part['day']}`
}

/** The date and time in Sydney, such as "2026-11-15 21:03:12". */
export function sydneyTime(at: number): string {
  const part = partsAt(at)
  return `${part['year']}-${part['month']}-${part['day']} ${part['hour']}:${part['minute']}:${part['second']}`
}

const MONTHS = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
] as const

/** A date as Australians write it: "2026-11-05" → "5 November 2026". */
export function writtenDate(date: string): string {
  const [year, month, day] = date.split('-').map(Number)
  return `${day} ${MONTHS[(month ?? 1) - 1]} ${year}`
}

export interface CalendarPeriod {
  /** Unix ms, inclusive. */
  readonly from: number
  /** Unix ms, exclusive. */
  readonly to: number
}

// Cached, because formatting a date takes microseconds and consecutive rows nearly always fall on the same day.
let latestDay: CalendarPeriod = { from: 0, to: 0 }

/** The day in Sydney that contains `at`. It has 23 to 25 hours. */
export function sydneyDayPeriod(at: number): CalendarPeriod {
  if (at < latestDay.from || at >= latestDay.to) {
    const [year = 0, month = 0, day = 0] = sydneyDate(at).split('-').map(Number)
    latestDay = { from: sydneyMidnight(year, month, day), to: sydneyMidnight(year, month, day + 1) }
  }
  return latestDay
}

/** Unix ms of the start of the day in Sydney that contains `at`. */
export function sydneyDay(at: number): number {
  return sydneyDayPeriod(at).from
}

/** A calendar month in Sydney. */
export interface Month extends CalendarPeriod {
  /** Such as "2026-11". */
  readonly name: string
}

/** Parses "2026-11"; undefined when the text is not a month. */
export function parseMonth(name: string): Month | undefined {
  const match = /^(20\d{2})-(0[1-9]|1[0-2])$/.exec(name)
  if (!match) return undefined
  const [year, month] = [Number(match[1]), Number(match[2])]
  return { name, from: sydneyMidnight(year, month, 1), to: sydneyMidnight(year, month + 1, 1) }
}

let latestMonth: Month = { name: '', from: 0, to: 0 }

export function sydneyMonth(at: number): Month {
  if (at >= latestMonth.from && at < latestMonth.to) return latestMonth
  const month = parseMonth(sydneyDate(at).slice(0, 7))
  if (!month) throw new RangeError(`${at} is not a time in this century`)
  return (latestMonth = month)
}

function offsetAt(at: number): number {
  const part = partsAt(at)
  const wall = Date.UTC(
    Number(part['year']),
    Number(part['month']) - 1,
    Number(part['day']),
    Number(part['hour']),
    Number(part['minute']),
    Number(part['second']),
  )
  return wall - Math.floor(at / 1000) * 1000
}

function partsAt(at: number): Record<string, string> {
  return Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, value]))
}
