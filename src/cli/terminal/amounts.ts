import type { BatchPrices, ImagePrice, ModelPrices } from '../../billing/rating/price-kinds.ts'
import type { Usage } from '../../billing/rating/rating.ts'
import { count } from '../../shared/counts.ts'
import { formatAud, grouped, type PicoAud } from '../../shared/money/money.ts'

/** "A$1,234.50", exact. */
export function audText(amount: PicoAud, decimals = 2): string {
  return amount < 0n ? `-${audText(-amount, decimals)}` : `A$${grouped(formatAud(amount, decimals))}`
}

/** As many decimals as the most precise of the amounts needs, so that a column of them lines up. */
export function decimalsOf(amounts: readonly PicoAud[]): number {
  return amounts.reduce((most, amount) => Math.max(most, formatAud(amount).split('.')[1]?.length ?? 0), 2)
}

/** What a model costs, in words. */
export function pricesText(prices: ModelPrices): string {
  return pricesLines(prices).join('; ')
}

/** Tokens per million, images and minutes, each in their own unit. */
export function pricesLines(prices: ModelPrices): readonly string[] {
  const { input_per_million: input, output_per_million: output, cached_input_per_million: cached } = prices
  const tokens = [
    ...(isCharged(input) ? [`A$${input} in`] : []),
    ...(cached === undefined || !isCharged(input) ? [] : [`A$${cached} cached`]),
    ...(isCharged(output) ? [`A$${output} out`] : []),
  ]
  const parts = [
    ...(tokens.length === 0 ? [] : [`${tokens.join(', ')} per 1M`]),
    ...(prices.per_image === undefined ? [] : [`A$${prices.per_image} per image`]),
    ...(prices.image_prices ?? []).map(imagePriceText),
    ...(prices.per_audio_minute === undefined ? [] : [`A$${prices.per_audio_minute} per minute`]),
    ...(prices.batch === undefined ? [] : [`batch ${batchText(prices.batch)}`]),
  ]
  return parts.length === 0 ? ['free'] : parts
}

function batchText(batch: BatchPrices): string {
  return typeof batch === 'string' ? `times ${batch}` : pricesText(batch)
}

function imagePriceText({ size, quality, per_image: price }: ImagePrice): string {
  return `A$${price} per ${[size, quality].filter((it) => it !== undefined).join(' ')} image`
}

/** What a request used, in the units that it is billed in. */
export function usageText(usage: Usage & { readonly capacityMs?: number | undefined }): string {
  const { inputTokens, cachedInputTokens, outputTokens, images, audioMs, capacityMs } = usage
  const cached = cachedInputTokens === 0 ? '' : ` (${count(cachedInputTokens)} cached)`
  const parts = [
    ...(inputTokens === 0 ? [] : [`${count(inputTokens)}${cached} in`]),
    ...(outputTokens === 0 ? [] : [`${count(outputTokens)} out`]),
    ...(images === 0 ? [] : [`${count(images)} ${Math.abs(images) === 1 ? 'image' : 'images'}`]),
    ...(audioMs === 0 ? [] : [durationText(audioMs)]),
    ...(capacityMs === undefined || capacityMs === 0 ? [] : [`${durationText(capacityMs)} reserved`]),
  ]
  return parts.length === 0 ? 'nothing' : parts.join(', ')
}

/** "63.2 s", "12.5 min", "744 h". */
export function durationText(ms: number): string {
  const size = Math.abs(ms)
  if (size < 1000) return `${Math.round(ms)} ms`
  if (size < 600_000) return `${trimmed(ms / 1000)} s`
  return size < 36_000_000 ? `${trimmed(ms / 60_000)} min` : `${trimmed(ms / 3_600_000)} h`
}

function isCharged(price: string | undefined): price is string {
  return price !== undefined && !/^[0.]+$/.test(price)
}

function trimmed(value: number): string {
  return value.toFixed(1).replace(/\.0$/, '')
}
