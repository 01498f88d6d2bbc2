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
