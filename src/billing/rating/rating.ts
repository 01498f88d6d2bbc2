import { divideHalfUp, formatAud, parseAud, type PicoAud } from '../../shared/money/money.ts'

/**
 * On which capacity a request runs. `default` has its turn in the queue. `flex` and `batch` use only what is idle, at the
 * batch price: `flex` is a single request, `batch` a line of a batch.
 */
export const serviceTiers = ['default', 'flex', 'batch'] as const
export type ServiceTier = (typeof serviceTiers)[number]

/** What a model costs, in pico-AUD per unit. Text is per token, so that rating is a multiplication. */
export interface Rates {
  readonly inputPerToken: PicoAud
  readonly outputPerToken: PicoAud
  readonly cachedInputPerToken: PicoAud | null
  readonly perImage: PicoAud | null
  readonly perAudioMinute: PicoAud | null
}

/** What a request consumed. Input tokens include the cached ones. */
export interface Usage {
  readonly inputTokens: number
  readonly cachedInputTokens: number
  readonly outputTokens: number
  readonly images: number
  readonly audioMs: number
}

/** Prices as an operator writes them: AUD, decimal strings, excluding GST. */
export interface PriceList {
  readonly input_per_million?: string
  readonly output_per_million?: string
  readonly cached_input_per_million?: string
  readonly per_image?: string
  readonly per_audio_minute?: string
  /** The price of reserved capacity, whose tokens are free. */
  readonly per_hour?: string
}

export const noUsage: Usage = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, images: 0, audioMs: 0 }

export const freeRates: Rates = {
  inputPerToken: 0n,
  outputPerToken: 0n,
  cachedInputPerToken: null,
  perImage: null,
  perAudioMinute: null,
}

/** The price versions of tokens on reserved capacity, which are free whatever the price list says. */
export const freeVersions: Readonly<Record<ServiceTier, number>> = { default: 0, flex: -1, batch: -2 }

const MILLION = 1_000_000n

/** A higher price is a typo, and its amounts could overflow the ledger's 64 bits. */
const MAX_PRICE = 10_000n * 1_000_000_000_000n

/** Completes "must be …" in the error for a refused price. */
export const priceRule =
  'an amount in AUD such as "0.20": at most 10000, and at most 6 decimals for a price per million tokens'

export function rate(usage: Usage, rates: Rates): PicoAud {
  const cached = Math.min(Math.max(0, usage.cachedInputTokens), usage.inputTokens)
  const cachedRate = rates.cachedInputPerToken ?? rates.inputPerToken
  return (
    BigInt(usage.inputTokens - cached) * rates.inputPerToken +
    BigInt(cached) * cachedRate +
    BigInt(usage.outputTokens) * rates.outputPerToken +
    BigInt(usage.images) * (rates.perImage ?? 0n) +
    divideHalfUp(BigInt(usage.audioMs) * (rates.perAudioMinute ?? 0n), 60_000n)
  )
}

/** The rates, or the first key whose value is not a valid price. */
export function parsePriceList(prices: PriceList): Rates | { readonly badKey: keyof PriceList } {
  const amounts: Partial<Record<keyof PriceList, PicoAud>> = {}
  for (const key of Object.keys(prices) as (keyof PriceList)[]) {
    const text = prices[key]
    if (text === undefined || text === null) continue
    const amount = parseAud(text)
    // With more than six decimals per million tokens, one token would not cost a whole number of pico-AUD.
    if (amount === undefined || amount > MAX_PRICE || (key.endsWith('_per_million') && amount % MILLION !== 0n))
      return { badKey: key }
    amounts[key] = amount
  }
  const perToken = (amount: PicoAud | undefined): PicoAud | null => (amount === undefined ? null : amount / MILLION)
  return {
    inputPerToken: perToken(amounts.input_per_million) ?? 0n,
    outputPerToken: perToken(amounts.output_per_million) ?? 0n,
    cachedInputPerToken: perToken(amounts.cached_input_per_million),
    perImage: amounts.per_image ?? null,
    perAudioMinute: amounts.per_audio_minute ?? null,
  }
}

/** The inverse of `parsePriceList`. Rates are stored and compared in this form. */
export function formatPriceList(rates: Rates): PriceList {
  const perMillion = (amount: PicoAud): string => formatAud(amount * MILLION)
  return {
    input_per_million: perMillion(rates.inputPerToken),
    output_per_million: perMillion(rates.outputPerToken),
    ...(rates.cachedInputPerToken === null ? {} : { cached_input_per_million: perMillion(rates.cachedInputPerToken) }),
    ...(rates.perImage === null ? {} : { per_image: formatAud(rates.perImage) }),
    ...(rates.perAudioMinute === null ? {} : { per_audio_minute: formatAud(rates.perAudioMinute) }),
  }
}
