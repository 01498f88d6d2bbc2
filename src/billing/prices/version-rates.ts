import { readPricedName, tierOfKind } from '../rating/price-kinds.ts'
import type { VersionRates } from '../invoices/invoice.ts'
import { parseAud } from '../../shared/money/money.ts'
import { freeRates, freeVersions, parsePriceList, serviceTiers } from '../rating/rating.ts'
import type { PriceVersion } from '../../workspaces/workspace.ts'

const freeOnReserved = serviceTiers.map(
  (tier) => [freeVersions[tier], { ...freeRates, perHour: null, imageKind: '', tier }] as const,
)

/** Looks up the rates of any price version, past or present. */
export function versionRates(prices: readonly PriceVersion[]): (version: number) => VersionRates {
  const byId = new Map(prices.map((version) => [version.id, version]))
  const parsed = new Map<number, VersionRates>(freeOnReserved)
  return (id) => {
    let rates = parsed.get(id)
    if (!rates) parsed.set(id, (rates = ratesOf(id, byId.get(id))))
    return rates
  }
}

function ratesOf(id: number, version: PriceVersion | undefined): VersionRates {
  const rates = version && parsePriceList(version.prices ?? {})
  if (!rates || 'badKey' in rates) throw new Error(`price version ${id} does not exist or is unreadable`)
  const { kind } = readPricedName(version.model)
  const tier = tierOfKind(kind)
  return {
    ...rates,
    perHour: parseAud(version.prices?.per_hour ?? '') ?? null,
    imageKind: tier === 'default' ? kind : '',
    tier,
  }
}
