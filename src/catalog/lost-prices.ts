import type { Model } from '../core/catalog.ts'
import { parseAud } from '../core/money/money.ts'
import { listPrices } from './price-book.ts'

/**
 * What a new catalog would lose, in words: all of its models, or a price that something is charged for now. Both are
 * more likely to be a file that was cut off than a decision. A model or a reservation may go, and its prices with it.
 */
export function lossesIn(before: readonly Model[], after: readonly Model[]): readonly string[] {
  if (before.length > 0 && after.length === 0) return ['it has no models']
  return after.flatMap((model) => {
    const previous = before.find(({ id }) => id === model.id)
    const lost = previous ? lostPrices(previous, model) : []
    return lost.length === 0 ? [] : [`${model.id} would lose ${lost.join(', ')}`]
  })
}

function lostPrices(before: Model, after: Model): readonly string[] {
  const prices = chargedPrices(after)
  const hours = after.dedicated.filter(({ lane, perHour }) => {
    const previous = before.dedicated.find((it) => it.lane === lane)
    return isCharged(previous?.perHour) && !isCharged(perHour)
  })
  return [
    ...chargedPrices(before).filter((name) => !prices.includes(name)),
    ...hours.map(({ workspace }) => `per_hour for ${workspace}`),
  ]
}

/** The names of all prices above zero, except those that another one replaces when they are missing. */
function chargedPrices(model: Model): readonly string[] {
  const { cached_input_per_million: _cached, image_prices: _kinds, ...prices } = listPrices(model)
  return Object.entries(prices).flatMap(([name, price]) => (isCharged(price) ? [name] : []))
}

function isCharged(price: string | undefined): boolean {
  return (parseAud(price ?? '') ?? 0n) > 0n
}
