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

/** Unix ms of 00:00 in Sydney; `day` and `month` (from 1) may run over, as in Date.UTC. */
export function sydneyMidnight(year: number, month: number, day: number): number {
  const wall = Date.UTC(year, month - 1, day)
  // The offset at the guess may be the one before a change of the clock; the second look is after it.
  const guess = wall - offsetAt(wall)
  return wall - offsetAt(guess)
}

/** "2026-11-15" as it is in Sydney. */
export function sydneyDate(at: number): string {
  const part = partsAt(at)
  return `${part['year']}-${part['month']}-${part['day']}`
}

// Rows come in the order of time, nearly all of them on one day: looking a date up costs microseconds.
let latestDay = { from: 0, to: 0 }

/** Unix ms of the midnight in Sydney at or before a moment. */
export function sydneyDay(at: number): number {
  if (at < latestDay.from || at >= latestDay.to) {
    const [year = 0, month = 0, day = 0] = sydneyDate(at).split('-').map(Number)
    latestDay = { from: sydneyMidnight(year, month, day), to: sydneyMidnight(year, month, day + 1) }
  }
  return latestDay.from
}

/** A calendar month in Sydney, from its first moment to the first of the next. */
export interface Month {
  /** "2026-11". */
  readonly name: string
  readonly from: number
  readonly to: number
}

/** undefined where the text is no month. */
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
  if (!month) throw new RangeError(`${at} is no time of this century`)
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
