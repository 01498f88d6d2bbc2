import { withoutTrailing } from '../without-trailing.ts'

/** Money is integer pico-AUD (10⁻¹² AUD): A$0.15 per million tokens is exactly 150,000 per token. */
export type PicoAud = bigint

const PICO_PER_AUD = 1_000_000_000_000n
const PICO_PER_CENT = 10_000_000_000n
const DECIMAL = /^(0|[1-9]\d{0,8})(?:\.(\d{1,12}))?$/

/** Parses an exact decimal such as "0.20"; undefined when the text is not one. */
export function parseAud(text: string): PicoAud | undefined {
  const match = DECIMAL.exec(text)
  if (!match) return undefined
  return BigInt(match[1] ?? '0') * PICO_PER_AUD + BigInt((match[2] ?? '').padEnd(12, '0'))
}

/** Reads what `formatAud` writes, which may be negative and larger than a price. */
export function parseSignedAud(text: string): PicoAud {
  const match = /^(-?)(\d+)(?:\.(\d{1,12}))?$/.exec(text)
  if (!match) throw new RangeError(`"${text}" is not an amount`)
  const amount = BigInt(match[2] ?? '0') * PICO_PER_AUD + BigInt((match[3] ?? '').padEnd(12, '0'))
  return match[1] === '-' ? -amount : amount
}

/** Exact, with at least `decimals` digits after the point: 150000n → "0.00000015". */
export function formatAud(amount: PicoAud, decimals = 2): string {
  const sign = amount < 0n ? '-' : ''
  const digits = (amount < 0n ? -amount : amount).toString().padStart(13, '0')
  const fraction = withoutTrailing(digits.slice(-12), '0').padEnd(decimals, '0')
  const whole = digits.slice(0, -12)
  return fraction === '' ? sign + whole : `${sign}${whole}.${fraction}`
}

/** "-9384.8726238" → "-9,384.8726238" */
export function grouped(amount: string): string {
  const [whole = '', ...fraction] = amount.split('.')
  const groups: string[] = []
  let end = whole.length
  for (const first = whole.startsWith('-') ? 1 : 0; end - 3 > first; end -= 3) groups.unshift(whole.slice(end - 3, end))
  return [[whole.slice(0, end), ...groups].join(','), ...fraction].join('.')
}

/** Divides, rounding halves away from zero, so that a credit reverses exactly what was charged. */
export function divideHalfUp(amount: bigint, divisor: bigint): bigint {
  return amount < 0n ? -divideHalfUp(-amount, divisor) : (2n * amount + divisor) / (2n * divisor)
}

export type Cents = bigint

export function toCents(amount: PicoAud): Cents {
  return divideHalfUp(amount, PICO_PER_CENT)
}

/** "9384.87" */
export function formatCents(amount: Cents): string {
  return formatAud(amount * PICO_PER_CENT)
}
