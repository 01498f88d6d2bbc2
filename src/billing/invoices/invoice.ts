import { CREDIT, type LedgerRow } from '../../ledger/rows.ts'
import { divideHalfUp, toCents, type Cents, type PicoAud } from '../../shared/money/money.ts'
import { freeVersions, serviceTiers, type Rates, type ServiceTier } from '../rating/rating.ts'
import type { PricedSums } from '../usage/usage-sums.ts'

/** Turns usage into the amount owed: exact until the subtotal, which is rounded once. */

export const units = [
  'input_tokens',
  'cached_input_tokens',
  'output_tokens',
  'images',
  'audio_minutes',
  'capacity_hours',
  'rounding',
  'credit',
] as const
export type Unit = (typeof units)[number]

export interface InvoiceLine {
  readonly model: string
  readonly unit: Unit
  /** The size and quality of images that have their own price; '' otherwise. */
  readonly imageKind: string
  readonly tier: ServiceTier
  /** Why a credit was given; '' otherwise. */
  readonly reason: string
  /** Tokens or images, or milliseconds when the unit is a time. */
  readonly quantity: bigint
  /** Per token, image, minute or hour. */
  readonly rate: PicoAud
  /** The exact sum of the rows' shares. */
  readonly amount: PicoAud
  /** The line covers the model's rows at these prices. */
  readonly priceVersions: readonly number[]
}

interface Totals {
  /** The sum of the lines before rounding. */
  readonly exact: PicoAud
  readonly subtotal: Cents
  readonly gst: Cents
  readonly total: Cents
}

/** The rates of one price version. */
export interface VersionRates extends Rates {
  /** The rate of reserved capacity; null when the version is not for reserved capacity. */
  readonly perHour: PicoAud | null
  /** The kind of image that `perImage` applies to; '' means every kind without its own price. */
  readonly imageKind: string
  readonly tier: ServiceTier
}

/** The milliseconds in the unit of a rate for time. */
const MS_PER: Readonly<Partial<Record<Unit, bigint>>> = { audio_minutes: 60_000n, capacity_hours: 3_600_000n }

/** One line for each model, unit, image kind, tier and rate, sorted by model and unit. Free usage and credits have none. */
export function linesOf(sums: readonly PricedSums[], ratesOf: (version: number) => VersionRates): InvoiceLine[] {
  const lines = new Map<string, InvoiceLine>()
  for (const sum of sums) {
    if (sum.model === CREDIT) continue
    for (const part of partsOf(sum, ratesOf(sum.priceVersion))) {
      if (part.rate === 0n || (part.quantity === 0n && part.amount === 0n)) continue
      const address = `${part.model} ${part.unit} ${part.imageKind} ${part.tier} ${part.rate}`
      const line = lines.get(address)
      lines.set(address, line ? joined(line, part) : part)
    }
  }
  return [...lines.values()].sort(byModelAndUnit)
}

/**
 * Tokens and images cost a whole multiple of their rate, so their share follows from the sums. Time is rounded to the
 * pico-AUD in each row, so its share is the remainder.
 */
function partsOf(sum: PricedSums, rates: VersionRates): InvoiceLine[] {
  const { model, priceVersion } = sum
  const part = (unit: Unit, quantity: bigint, rate: PicoAud, amount = quantity * rate): InvoiceLine => ({
    model,
    unit,
    imageKind: unit === 'images' ? rates.imageKind : '',
    tier: rates.tier,
    reason: '',
    quantity,
    rate,
    amount,
    priceVersions: [priceVersion],
  })
  const cached = rates.cachedInputPerToken === null ? 0n : sum.cachedInputTokens
  const parts = [
    part('input_tokens', sum.inputTokens - cached, rates.inputPerToken),
    part('cached_input_tokens', cached, rates.cachedInputPerToken ?? 0n),
    part('output_tokens', sum.outputTokens, rates.outputPerToken),
    part('images', sum.images, rates.perImage ?? 0n),
  ]
  const remainder = sum.amount - parts.reduce((total, { amount }) => total + amount, 0n)
  const timed =
    rates.perHour === null
      ? part('audio_minutes', sum.audioMs, rates.perAudioMinute ?? 0n, remainder)
      : part('capacity_hours', sum.capacityMs, rates.perHour, remainder)
  if (remainder !== 0n && timed.rate === 0n) {
    throw new Error(`${model} at price version ${priceVersion} cost ${remainder} pico-AUD more than its usage`)
  }
  return [...parts, timed]
}

function joined(one: InvoiceLine, other: InvoiceLine): InvoiceLine {
  return {
    ...one,
    quantity: one.quantity + other.quantity,
    amount: one.amount + other.amount,
    priceVersions: [...one.priceVersions, ...other.priceVersions],
  }
}

/** One line for each credit, in the order of time. */
export function creditLines(rows: readonly LedgerRow[]): InvoiceLine[] {
  const inOrder = rows.toSorted(
    (one, other) => one.settledAt - other.settledAt || (one.requestId < other.requestId ? -1 : 1),
  )
  return inOrder.map(({ amount, correction, credit }) => ({
    model: CREDIT,
    unit: 'credit',
    imageKind: '',
    tier: 'default',
    reason: credit?.reason ?? correction?.reason ?? '',
    quantity: 1n,
    rate: amount,
    amount,
    priceVersions: [freeVersions.default],
  }))
}

/**
 * Lines that a reader can recompute: each amount is its quantity times its rate. Time is rounded to the pico-AUD in
 * each row, so the sum of those roundings gets a line of its own, after the line that it belongs to.
 */
export function recomputableLines(lines: readonly InvoiceLine[]): InvoiceLine[] {
  return lines.flatMap((line) => {
    const amount = timedAmount(line.unit, line.quantity, line.rate)
    if (amount === undefined) return [line]
    const rounding = line.amount - amount
    if (rounding === 0n) return [line]
    return [
      { ...line, amount },
      { ...line, unit: 'rounding' as const, quantity: 1n, rate: rounding, amount: rounding },
    ]
  })
}

/** What a time costs at its rate, rounded once; undefined if the unit is not a time. */
export function timedAmount(unit: Unit, quantity: bigint, rate: PicoAud): PicoAud | undefined {
  const ms = MS_PER[unit]
  return ms === undefined ? undefined : divideHalfUp(quantity * rate, ms)
}

function byModelAndUnit(one: InvoiceLine, other: InvoiceLine): number {
  if (one.model !== other.model) return one.model < other.model ? -1 : 1
  if (one.unit !== other.unit) return units.indexOf(one.unit) - units.indexOf(other.unit)
  if (one.imageKind !== other.imageKind) return one.imageKind < other.imageKind ? -1 : 1
  if (one.tier !== other.tier) return serviceTiers.indexOf(one.tier) - serviceTiers.indexOf(other.tier)
  return one.rate < other.rate ? -1 : 1
}

/** The subtotal is rounded once; GST is a tenth of the printed subtotal. */
export function totalsOf(lines: readonly InvoiceLine[]): Totals {
  const exact = lines.reduce((sum, { amount }) => sum + amount, 0n)
  const subtotal = toCents(exact)
  const gst = divideHalfUp(subtotal, 10n)
  return { exact, subtotal, gst, total: subtotal + gst }
}

/** The cost of capacity reserved for `ms` milliseconds. */
export function capacityAmount(ms: number, perHour: PicoAud): PicoAud {
  return divideHalfUp(BigInt(ms) * perHour, 3_600_000n)
}
