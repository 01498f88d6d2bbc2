import type { ModelPrices } from '../billing/rating/price-kinds.ts'
import { formatPriceList } from '../billing/rating/rating.ts'
import type { Model } from './model.ts'

/** The catalog's prices for a model, as an operator would write them. */
export function listPrices({ rates, imagePrices, batchPrices }: Model): ModelPrices {
  return {
    ...formatPriceList(rates),
    ...(imagePrices.length === 0 ? {} : { image_prices: imagePrices }),
    ...(batchPrices === undefined ? {} : { batch: batchPrices }),
  }
}
