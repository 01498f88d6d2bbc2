/** Figures as people read them, always with their unit. */

const whole = new Intl.NumberFormat('en-AU', { maximumFractionDigits: 0 })
const compact = new Intl.NumberFormat('en-AU', { notation: 'compact', maximumFractionDigits: 1 })

export const count = (value: number): string => whole.format(value)

/** 128,000 is 128K: for figures that are only compared. */
export const brief = (value: number): string => (value < 10_000 ? whole.format(value) : compact.format(value))

/**
 * An amount of AUD as people read it: dollars and cents, or cents with three digits if it is less than ten of them. Those
 * of a column have one unit, and as many digits as the smallest one needs. The exact one is shown on hover.
 */
export function aud(amount: string | number, column: readonly (string | number)[] = []): string {
  const sizes = [amount, ...column].map((it) => Math.abs(Number(it))).filter((size) => size > 0)
  const areDollars = sizes.length === 0 || Math.max(...sizes) >= 0.1
  const unit = areDollars ? 1 : 0.01
  const smallest = Math.min(...sizes) / unit
  const needed = areDollars && smallest >= 0.1 ? 2 : 2 - Math.floor(Math.log10(smallest))
  const digits = column.length === 0 ? needed : Math.min(needed, COLUMN_DIGITS)
  return (areDollars ? dollars : cents)(fixed(Number(amount) / unit, digits))
}

const COLUMN_DIGITS = 4
const fixed = (value: number, digits: number): string =>
  value.toLocaleString('en-AU', { minimumFractionDigits: digits, maximumFractionDigits: digits })
const cents = (digits: string): string => `${digits.replace('-', '−')}¢`

/** A price: always in dollars, with as many digits as it has, so that prices can be compared. */
export const price = (amount: string): string =>
  dollars(Number(amount).toLocaleString('en-AU', { minimumFractionDigits: 2, maximumFractionDigits: 8 }))

/** A decimal as it is in the ledger, with every digit. In a column, all have as many as the longest one. */
export function exactAud(amount: string, atLeast = 2): string {
  const [units = '', decimals = ''] = amount.split('.')
  return dollars(`${units.replaceAll(/\B(?=(\d{3})+$)/g, ',')}.${decimals.padEnd(atLeast, '0')}`)
}

const dollars = (digits: string): string => (digits.startsWith('-') ? `−A$${digits.slice(1)}` : `A$${digits}`)

const PICO_DIGITS = 12

/** A decimal of AUD in pico-AUD, of which sums are exact. */
export function picoOf(amount: string): number {
  const [units = '', decimals = ''] = amount.split('.')
  return Number(units + decimals.padEnd(PICO_DIGITS, '0'))
}

export const picoAud = (amount: string | number): string => aud(Number(amount) / 10 ** PICO_DIGITS)

/** Pico-AUD as a decimal of AUD. */
export function audOf(pico: string | number): string {
  const value = BigInt(pico)
  const digits = String(value < 0n ? -value : value).padStart(PICO_DIGITS + 1, '0')
  const decimals = digits.slice(-PICO_DIGITS).replace(/0+$/, '').padEnd(2, '0')
  return `${value < 0n ? '-' : ''}${digits.slice(0, -PICO_DIGITS)}.${decimals}`
}

export const exactPicoAud = (pico: string | number): string => exactAud(audOf(pico))

/** The labels of an axis: one unit for all of them, and the digits that its steps have. */
export function picoAudAxis(max: number, step: number): (value: number) => string {
  const areDollars = max >= 10 ** (PICO_DIGITS - 1)
  const unit = 10 ** (areDollars ? PICO_DIGITS : PICO_DIGITS - 2)
  const needed = Math.max(0, -Math.floor(Math.log10(step / unit) + 1e-9))
  const digits = areDollars && needed > 0 ? Math.max(2, needed) : needed
  return (value) => (areDollars ? dollars : cents)(fixed(value / unit, digits))
}

export function milliseconds(value: number): string {
  if (value < 1000) return `${Math.round(value)} ms`
  if (value < 60_000) return `${Number((value / 1000).toFixed(value < 10_000 ? 2 : 1))} s`
  const seconds = Math.round((value % 60_000) / 1000)
  return `${Math.floor(value / 60_000)} min${seconds === 0 ? '' : ` ${seconds} s`}`
}

export const percent = (share: number): string => `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`

/** The ledger uses Sydney time, so that is shown. */
const SYDNEY = 'Australia/Sydney'
const moment = new Intl.DateTimeFormat('en-AU', {
  timeZone: SYDNEY,
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
})
const day = new Intl.DateTimeFormat('en-AU', { timeZone: SYDNEY, day: 'numeric', month: 'short', year: 'numeric' })
const clockTime = new Intl.DateTimeFormat('en-AU', {
  timeZone: SYDNEY,
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
  hourCycle: 'h23',
})
const timeOfDay = new Intl.DateTimeFormat('en-AU', {
  timeZone: SYDNEY,
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
})
const isoDay = new Intl.DateTimeFormat('en-CA', { timeZone: SYDNEY, year: 'numeric', month: '2-digit', day: '2-digit' })

export const time = (value: string | number): string => moment.format(new Date(value))
export const date = (value: string | number): string => day.format(new Date(value))
/** The time of the day: 16:04:05. */
export const clock = (value: string): string => timeOfDay.format(new Date(value))
export const exactTime = (value: number): string => clockTime.format(new Date(value))
/** The day in Sydney as the API takes it: 2026-11-16. */
export const sydneyDate = (value: number): string => isoDay.format(new Date(value))

/** A day and a time of day in Sydney, as the API takes a time. */
export function sydneyInstant(localDay: string, localTime: string): string {
  const asUtc = Date.parse(`${localDay}T${localTime}Z`)
  const offsetAt = (at: number): number => Date.parse(`${sydneyDate(at)}T${timeOfDay.format(at)}Z`) - at
  // The offset changes twice a year: the second step takes that of the time itself.
  const near = asUtc - offsetAt(asUtc)
  return new Date(asUtc - offsetAt(near)).toISOString()
}

export function ago(value: string | null): string {
  if (value === null) return 'never'
  const seconds = Math.max(0, (Date.now() - Date.parse(value)) / 1000)
  if (seconds < 60) return 'just now'
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`
  return date(value)
}
