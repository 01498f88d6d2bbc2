import { divideHalfUp, formatAud, parseAud, type PicoAud } from '../../shared/money/money.ts'
import { formatPriceList, parsePriceList, priceRule, type PriceList, type Rates, type ServiceTier } from './rating.ts'

/**
 * Prices of one model that differ by kind: images by size and quality, and the tiers of idle capacity. Each kind has its
 * own name and its own price versions, so that the price version of a ledger row is enough to compute its amount and to
 * know its tier.
 */

/** As an operator writes it. Without a quality, it applies to every quality that has no price of its own. */
export interface ImagePrice {
  readonly size: string
  readonly quality?: string
  readonly per_image: string
}

/** The prices of tokens on idle capacity: a factor of the normal ones, or rates. Rates that are left out stay normal. */
export type BatchPrices =
  | string
  | Pick<PriceList, 'input_per_million' | 'output_per_million' | 'cached_input_per_million'>

/**
 * What an operator writes for a model. `per_image` applies to every image that `image_prices` does not list, and `batch`
 * to the tiers flex and batch.
 */
export interface ModelPrices extends PriceList {
  readonly image_prices?: readonly ImagePrice[]
  readonly batch?: BatchPrices
}

/** The tiers of idle capacity. A size begins with a digit or is `auto`, so none of them is a kind of image. */
const idleTiers = ['flex', 'batch'] as const satisfies readonly ServiceTier[]

/** The tier that a kind of price is for. */
export function tierOfKind(kind: string): ServiceTier {
  return idleTiers.find((tier) => tier === kind) ?? 'default'
}

/** A model's price lists by kind; '' is for everything that has no kind of its own. */
export type PricesByKind = ReadonlyMap<string, PriceList>

/** The requested size and quality, such as "1024x1792 hd". A missing size counts as `auto`. */
export function imageKind(size: string | undefined, quality: string | undefined): string {
  const knownSize = size ?? 'auto'
  return quality === undefined || quality === 'auto' ? knownSize : `${knownSize} ${quality}`
}

/** The kinds whose price may apply to an image, closest match first. */
export function closestKinds(kind: string): readonly string[] {
  const [size = ''] = kind.split(' ', 1)
  return size === kind ? [kind] : [kind, size]
}

/** The name under which a kind's price versions are stored. Safe because no slug contains a "#". */
export function pricedName(model: string, kind: string): string {
  return kind === '' ? model : `${model}#${kind}`
}

/** The inverse. A name of reserved capacity may contain anything after its "@", so it is never split. */
export function readPricedName(name: string): { readonly model: string; readonly kind: string } {
  const [, model, kind] = /^([^#@]+)#(.+)$/.exec(name) ?? []
  return model !== undefined && kind !== undefined ? { model, kind } : { model: name, kind: '' }
}

/** A price list for each kind, or the first invalid key and the rule it breaks. */
export function pricesByKind(
  prices: ModelPrices,
): PricesByKind | { readonly badKey: keyof ModelPrices; readonly rule: string } {
  const { image_prices: imagePrices = [], batch, ...rest } = prices
  const parsed = parsePriceList(rest)
  if ('badKey' in parsed) return { badKey: parsed.badKey, rule: priceRule }
  if (imagePrices.length > 0 && rest.per_image === undefined) {
    return { badKey: 'per_image', rule: 'set when image_prices is set; it is the price of every other image' }
  }
  const lists = new Map<string, PriceList>([['', rest]])
  for (const { size, quality, per_image: perImage } of imagePrices) {
    const kind = imageKind(size, quality)
    if (lists.has(kind)) return { badKey: 'image_prices', rule: `a list without duplicates, but has ${kind} twice` }
    const rates = parsePriceList({ per_image: perImage })
    if ('badKey' in rates) return { badKey: 'image_prices', rule: priceRule }
    // Formatted uniformly, so that "0.1" and "0.10" compare as the same price.
    lists.set(kind, { ...rest, per_image: formatAud(rates.perImage ?? 0n) })
  }
  // null counts as absent.
  if (!batch) return lists
  const rates = typeof batch === 'string' ? scaledRates(parsed, batch) : parsePriceList({ ...rest, ...batch })
  if ('badKey' in rates) return { badKey: 'batch', rule: typeof batch === 'string' ? factorRule : priceRule }
  for (const tier of idleTiers) lists.set(tier, formatPriceList(rates))
  return lists
}

const ONE = 1_000_000_000_000n

/** Completes "must be …" in the error for a refused factor. */
const factorRule = 'a factor from "0" to "1", such as "0.5", or rates'

/** The rates of tokens times a factor, each rounded to the whole pico-AUD. Images and audio are not sold by tier. */
function scaledRates(rates: Rates, text: string): Rates | { readonly badKey: 'batch' } {
  const factor = parseAud(text)
  if (factor === undefined || factor > ONE) return { badKey: 'batch' }
  const scaled = (amount: PicoAud): PicoAud => divideHalfUp(amount * factor, ONE)
  return {
    ...rates,
    inputPerToken: scaled(rates.inputPerToken),
    outputPerToken: scaled(rates.outputPerToken),
    cachedInputPerToken: rates.cachedInputPerToken === null ? null : scaled(rates.cachedInputPerToken),
  }
}

/** The inverse, as an operator would write it. A factor has become rates. Without a price for flex there is no batch price. */
export function asModelPrices(lists: PricesByKind): ModelPrices {
  const batch = lists.get('flex')
  const imagePrices = [...lists].flatMap(([kind, { per_image: perImage }]) => {
    const [size = '', quality] = kind.split(' ')
    if (kind === '' || tierOfKind(kind) !== 'default' || perImage === undefined) return []
    return [{ size, ...(quality === undefined ? {} : { quality }), per_image: perImage }]
  })
  return {
    ...lists.get(''),
    ...(imagePrices.length === 0 ? {} : { image_prices: imagePrices }),
    ...(batch && { batch: tokenPrices(batch) }),
  }
}

function tokenPrices({
  input_per_million: input = '0',
  output_per_million: output = '0',
  cached_input_per_million: cached,
}: PriceList): Exclude<BatchPrices, string> {
  return {
    input_per_million: input,
    output_per_million: output,
    ...(cached === undefined ? {} : { cached_input_per_million: cached }),
  }
}
