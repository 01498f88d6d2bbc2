/** Figures as people read them, always with their unit. */

const whole = new Intl.NumberFormat('en-AU', { maximumFractionDigits: 0 })
const compact = new Intl.NumberFormat('en-AU', { notation: 'compact', maximumFractionDigits: 1 })

export const count = (value: number): string => whole.format(value)

/** 128,000 is 128K: for figures that are only compared. */
export const brief = (value: number): string => (value < 10_000 ? whole.format(value) : compact.format(value))

/** An exact decimal of AUD, with at least two digits after the point, and small amounts never rounded away. */
export function aud(amount: string | number): string {
  const value = Number(amount)
  const size = Math.abs(value)
  const digits = size === 0 || size >= 1 ? 2 : size >= 0.01 ? 4 : size >= 0.0001 ? 6 : 8
  return dollars(value.toLocaleString('en-AU', { minimumFractionDigits: 2, maximumFractionDigits: digits }))
}

/** A decimal as it is in the ledger, with every digit. */
export function exactAud(amount: string): string {
  const [units = '', cents = '00'] = amount.split('.')
  return dollars(`${units.replaceAll(/\B(?=(\d{3})+$)/g, ',')}.${cents}`)
}

const dollars = (digits: string): string => (digits.startsWith('-') ? `−A$${digits.slice(1)}` : `A$${digits}`)

/** The cost of single requests: with enough digits that a column of them lines up. */
export function picoAud(amount: string): string {
  const value = Number(amount) / 1e12
  const digits = value === 0 || Math.abs(value) >= 1 ? 2 : 6
  const more = Math.abs(value) < 1e-5 ? 8 : 0
  return dollars(
    value.toLocaleString('en-AU', { minimumFractionDigits: digits, maximumFractionDigits: Math.max(digits, more) }),
  )
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
const isoDay = new Intl.DateTimeFormat('en-CA', { timeZone: SYDNEY, year: 'numeric', month: '2-digit', day: '2-digit' })

export const time = (value: string | number): string => moment.format(new Date(value))
export const date = (value: string | number): string => day.format(new Date(value))
export const exactTime = (value: number): string => clockTime.format(new Date(value))
/** The day in Sydney as the API takes it: 2026-11-16. */
export const sydneyDate = (value: number): string => isoDay.format(new Date(value))

export function ago(value: string | null): string {
  if (value === null) return 'never'
  const seconds = Math.max(0, (Date.now() - Date.parse(value)) / 1000)
  if (seconds < 60) return 'just now'
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`
  return date(value)
}
