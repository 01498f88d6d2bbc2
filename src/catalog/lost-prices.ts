import type { Model } from './model.ts'
import { parseAud } from '../shared/money/money.ts'
import { listPrices } from './list-prices.ts'

/**
 * What a new catalog would lose, as text for people: all of its models, or a price that is charged now. Both are more
 * likely a truncated file than a decision. A model or a reservation may be removed, and its prices with it.
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

/** The names of all prices above zero, except those with a fallback. */
function chargedPrices(model: Model): readonly string[] {
  const { cached_input_per_million: _cached, image_prices: _kinds, batch: _tiers, ...prices } = listPrices(model)
  return Object.entries(prices).flatMap(([name, price]) => (isCharged(price) ? [name] : []))
}

function isCharged(price: string | undefined): boolean {
  return (parseAud(price ?? '') ?? 0n) > 0n
}
