import { formatAud } from './money.ts'
import { parsePriceList, priceRule, type PriceList } from './rating.ts'

/**
 * Prices of images by size and quality. Each has versions of its own, under a name of its own, so that a row's
 * price version says all that its amount follows from, as it does for everything else.
 */

/** As an operator writes it; without a quality it is the price of every quality that has none of its own. */
export interface ImagePrice {
  readonly size: string
  readonly quality?: string
  readonly per_image: string
}

/** What an operator writes for a model. `per_image` is then the price of the images that are not in the list. */
export interface ModelPrices extends PriceList {
  readonly image_prices?: readonly ImagePrice[]
}

/** The price lists of a model by the kind of image they are for; '' is for all else. */
export type PricesByKind = ReadonlyMap<string, PriceList>

/** "1024x1792 hd": what an image is asked to be. A size that is left out is the size `auto`. */
export function imageKind(size: string | undefined, quality: string | undefined): string {
  const asked = size ?? 'auto'
  return quality === undefined || quality === 'auto' ? asked : `${asked} ${quality}`
}

/** The kinds whose price may be that of an image, the closest first. */
export function closestKinds(kind: string): readonly string[] {
  const [size = ''] = kind.split(' ', 1)
  return size === kind ? [kind] : [kind, size]
}

/** What the price of a kind has its versions under. No slug has a "#". */
export function pricedName(model: string, kind: string): string {
  return kind === '' ? model : `${model}#${kind}`
}

/** The inverse. The name of reserved capacity may hold anything behind its "@", and stays whole. */
export function readPricedName(name: string): { readonly model: string; readonly kind: string } {
  const [, model, kind] = /^([^#@]+)#(.+)$/.exec(name) ?? []
  return model !== undefined && kind !== undefined ? { model, kind } : { model: name, kind: '' }
}

/** The first key that cannot be so, with what it must be; or a list for each kind. */
export function pricesByKind(
  prices: ModelPrices,
): PricesByKind | { readonly badKey: keyof ModelPrices; readonly rule: string } {
  const { image_prices: ofImages = [], ...rest } = prices
  const read = parsePriceList(rest)
  if ('badKey' in read) return { badKey: read.badKey, rule: priceRule }
  if (ofImages.length > 0 && rest.per_image === undefined) {
    return { badKey: 'per_image', rule: 'given beside image_prices: it is the price of every other image' }
  }
  const lists = new Map<string, PriceList>([['', rest]])
  for (const { size, quality, per_image: perImage } of ofImages) {
    const kind = imageKind(size, quality)
    if (lists.has(kind)) return { badKey: 'image_prices', rule: `a list that has ${kind} once` }
    const rates = parsePriceList({ per_image: perImage })
    if ('badKey' in rates) return { badKey: 'image_prices', rule: priceRule }
    // Written in one way, so that the same amount is the same price.
    lists.set(kind, { ...rest, per_image: formatAud(rates.perImage ?? 0n) })
  }
  return lists
}

/** The inverse, as an operator would write it. */
export function asModelPrices(lists: PricesByKind): ModelPrices {
  const ofImages = [...lists].flatMap(([kind, { per_image: perImage }]) => {
    const [size = '', quality] = kind.split(' ')
    if (kind === '' || perImage === undefined) return []
    return [{ size, ...(quality === undefined ? {} : { quality }), per_image: perImage }]
  })
  return { ...lists.get(''), ...(ofImages.length === 0 ? {} : { image_prices: ofImages }) }
}
