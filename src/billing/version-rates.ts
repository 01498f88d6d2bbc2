import { readPricedName } from '../core/money/image-prices.ts'
import type { VersionRates } from '../core/money/invoice.ts'
import { parseAud } from '../core/money/money.ts'
import { FREE_VERSION, freeRates, parsePriceList } from '../core/money/rating.ts'
import type { PriceVersion } from '../ports/accounts.ts'

/** The rates of every price version there ever was. */
export function versionRates(prices: readonly PriceVersion[]): (version: number) => VersionRates {
  const byId = new Map(prices.map((version) => [version.id, version]))
  const read = new Map<number, VersionRates>([[FREE_VERSION, { ...freeRates, perHour: null, imageKind: '' }]])
  return (id) => {
    let rates = read.get(id)
    if (!rates) read.set(id, (rates = ratesOf(id, byId.get(id))))
    return rates
  }
}

function ratesOf(id: number, version: PriceVersion | undefined): VersionRates {
  const rates = version && parsePriceList(version.prices ?? {})
  if (!rates || 'badKey' in rates) throw new Error(`there is no readable price version ${id}`)
  return {
    ...rates,
    perHour: parseAud(version.prices?.per_hour ?? '') ?? null,
    imageKind: readPricedName(version.model).kind,
  }
}
