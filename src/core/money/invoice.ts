import { divideHalfUp, toCents, type Cents, type PicoAud } from './money.ts'
import type { Rates } from './rating.ts'
import type { PricedSums } from './usage-sums.ts'

/** From what was used to what is owed: pure, exact, and rounded once. */

export const units = [
  'input_tokens',
  'cached_input_tokens',
  'output_tokens',
  'images',
  'audio_minutes',
  'capacity_hours',
] as const
export type Unit = (typeof units)[number]

export interface InvoiceLine {
  readonly model: string
  readonly unit: Unit
  /** Of images at a price of their own: their size and quality; else ''. */
  readonly imageKind: string
  /** Tokens or images; milliseconds where the unit is a time. */
  readonly quantity: bigint
  /** For one token, image, minute or hour. */
  readonly rate: PicoAud
  /** Exactly the sum of the rows' shares. */
  readonly amount: PicoAud
  /** The rows of the line are those of the model at these prices. */
  readonly priceVersions: readonly number[]
}

export interface Totals {
  /** The sum of the lines, before it is rounded. */
  readonly exact: PicoAud
  readonly subtotal: Cents
  readonly gst: Cents
  readonly total: Cents
}

/** The rates behind a version of a price; `perHour` is that of reserved capacity. */
export interface VersionRates extends Rates {
  readonly perHour: PicoAud | null
  /** The kind of image that `perImage` is for; '': every kind without a price of its own. */
  readonly imageKind: string
}

export const HOUR_MS = 3_600_000n

/** One line for each model, unit (of images, each kind) and rate, in the order of the models and units. What is free has no line. */
export function linesOf(sums: readonly PricedSums[], ratesOf: (version: number) => VersionRates): InvoiceLine[] {
  const lines = new Map<string, InvoiceLine>()
  for (const sum of sums) {
    for (const part of partsOf(sum, ratesOf(sum.priceVersion))) {
      if (part.rate === 0n || (part.quantity === 0n && part.amount === 0n)) continue
      const address = `${part.model} ${part.unit} ${part.imageKind} ${part.rate}`
      const line = lines.get(address)
      lines.set(address, line ? joined(line, part) : part)
    }
  }
  return [...lines.values()].sort(byModelAndUnit)
}

/**
 * Tokens and images are whole numbers of a rate, so their share follows from the sums. Time is rounded in each
 * row, to the pico-AUD; its share is what remains.
 */
function partsOf(sum: PricedSums, rates: VersionRates): InvoiceLine[] {
  const { model, priceVersion } = sum
  const part = (unit: Unit, quantity: bigint, rate: PicoAud, amount = quantity * rate): InvoiceLine => ({
    model,
    unit,
    imageKind: unit === 'images' ? rates.imageKind : '',
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
  const remains = sum.amount - parts.reduce((total, { amount }) => total + amount, 0n)
  const timed =
    rates.perHour === null
      ? part('audio_minutes', sum.audioMs, rates.perAudioMinute ?? 0n, remains)
      : part('capacity_hours', sum.capacityMs, rates.perHour, remains)
  if (remains !== 0n && timed.rate === 0n) {
    throw new Error(`${model} at price ${priceVersion} cost ${remains} pico-AUD more than its usage`)
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

function byModelAndUnit(one: InvoiceLine, other: InvoiceLine): number {
  if (one.model !== other.model) return one.model < other.model ? -1 : 1
  if (one.unit !== other.unit) return units.indexOf(one.unit) - units.indexOf(other.unit)
  if (one.imageKind !== other.imageKind) return one.imageKind < other.imageKind ? -1 : 1
  return one.rate < other.rate ? -1 : 1
}

/** The subtotal is rounded once; GST is a tenth of the subtotal as printed. */
export function totalsOf(lines: readonly InvoiceLine[]): Totals {
  const exact = lines.reduce((sum, { amount }) => sum + amount, 0n)
  const subtotal = toCents(exact)
  const gst = divideHalfUp(subtotal, 10n)
  return { exact, subtotal, gst, total: subtotal + gst }
}

/** What a stretch of reserved capacity costs. */
export function capacityAmount(ms: number, perHour: PicoAud): PicoAud {
  return divideHalfUp(BigInt(ms) * perHour, HOUR_MS)
}
