import { formatAud } from '../../shared/money/money.ts'
import { parsePriceList, priceRule, type PriceList } from './rating.ts'

/**
 * Image prices by size and quality. Each combination has its own name and its own price versions, so that the price
 * version of a ledger row is enough to compute its amount, as for everything else.
 */

/** As an operator writes it. Without a quality, it applies to every quality that has no price of its own. */
export interface ImagePrice {
  readonly size: string
  readonly quality?: string
  readonly per_image: string
}

/** What an operator writes for a model. `per_image` applies to every image that `image_prices` does not list. */
export interface ModelPrices extends PriceList {
  readonly image_prices?: readonly ImagePrice[]
}

/** A model's price lists by kind of image; '' is for everything else. */
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
  const { image_prices: imagePrices = [], ...rest } = prices
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
  return lists
}

/** The inverse, as an operator would write it. */
export function asModelPrices(lists: PricesByKind): ModelPrices {
  const imagePrices = [...lists].flatMap(([kind, { per_image: perImage }]) => {
    const [size = '', quality] = kind.split(' ')
    if (kind === '' || perImage === undefined) return []
    return [{ size, ...(quality === undefined ? {} : { quality }), per_image: perImage }]
  })
  return { ...lists.get(''), ...(imagePrices.length === 0 ? {} : { image_prices: imagePrices }) }
}
