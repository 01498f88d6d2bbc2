import { readPricedName } from '../rating/image-prices.ts'
import type { VersionRates } from '../invoices/invoice.ts'
import { parseAud } from '../../shared/money/money.ts'
import { FREE_VERSION, freeRates, parsePriceList } from '../rating/rating.ts'
import type { PriceVersion } from '../../workspaces/workspace.ts'

/** Looks up the rates of any price version, past or present. */
export function versionRates(prices: readonly PriceVersion[]): (version: number) => VersionRates {
  const byId = new Map(prices.map((version) => [version.id, version]))
  const parsed = new Map<number, VersionRates>([[FREE_VERSION, { ...freeRates, perHour: null, imageKind: '' }]])
  return (id) => {
    let rates = parsed.get(id)
    if (!rates) parsed.set(id, (rates = ratesOf(id, byId.get(id))))
    return rates
  }
}

function ratesOf(id: number, version: PriceVersion | undefined): VersionRates {
  const rates = version && parsePriceList(version.prices ?? {})
  if (!rates || 'badKey' in rates) throw new Error(`price version ${id} does not exist or is unreadable`)
  return {
    ...rates,
    perHour: parseAud(version.prices?.per_hour ?? '') ?? null,
    imageKind: readPricedName(version.model).kind,
  }
}
