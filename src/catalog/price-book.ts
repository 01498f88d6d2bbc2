import type { Deployment, Model } from '../core/catalog.ts'
import type { Price } from '../core/job.ts'
import { formatAud, parseAud } from '../core/money.ts'
import { FREE_VERSION, freeRates, formatPriceList, parsePriceList, type PriceList, type Rates } from '../core/rating.ts'
import type { Clock, PriceVersion, Store } from '../ports.ts'

/** The current prices: of the catalog, and of workspaces that have their own. History stays in the store. */
export interface PriceBook {
  /** What a workspace pays for a model. */
  priceFor(model: Model, workspaceId: string): Price
  /** The same on one deployment of it: reserved capacity is paid for by the hour, so its tokens cost nothing. */
  priceOn(deployment: Deployment, model: Model, workspaceId: string): Price
  /** Unix ms at which the model first had a price. */
  firstPricedAt(model: Model): number
  /** Makes a new version of every list price that differs from the last one. */
  syncListPrices(models: readonly Model[]): Promise<void>
  /** Gives a workspace its own price, or with null the list price again. What it does not name stays at the list's. */
  setWorkspacePrice(model: Model, workspaceId: string, prices: PriceList | null): Promise<void>
  workspacePrices(workspaceId: string): ReadonlyMap<string, PriceList>
  reload(): Promise<void>
}

export async function openPriceBook(store: Store, clock: Clock): Promise<PriceBook> {
  let current = new Map<string, PriceVersion>()
  let firstAt = new Map<string, number>()
  const parsed = new WeakMap<PriceVersion, Rates>()

  const address = (model: string, workspaceId: string | null): string => `${workspaceId ?? ''} ${model}`

  async function reload(): Promise<void> {
    const { prices } = await store.accounts()
    current = new Map(prices.map((version) => [address(version.model, version.workspaceId), version]))
    firstAt = new Map(prices.toReversed().map((version) => [version.model, version.effectiveFrom]))
  }

  function ratesOf(version: PriceVersion): Rates {
    let rates = parsed.get(version)
    if (!rates) {
      const read = parsePriceList(version.prices ?? {})
      if ('badKey' in read) throw new Error(`price version ${version.id} is unreadable at ${read.badKey}`)
      parsed.set(version, (rates = read))
    }
    return rates
  }

  function priceFor(model: Model, workspaceId: string): Price {
    const own = current.get(address(model.id, workspaceId))
    const version = own?.prices ? own : current.get(address(model.id, null))
    if (!version) throw new Error(`${model.id} has no price version`)
    return { version: version.id, rates: ratesOf(version) }
  }

  async function add(model: string, workspaceId: string | null, prices: PriceList | null): Promise<void> {
    await store.addPriceVersion({ model, workspaceId, prices, effectiveFrom: clock.now() })
  }

  /** What is reserved, since when and at what rate an hour: a lane's price begins, changes and ends with the catalog. */
  async function syncReservations(models: readonly Model[]): Promise<void> {
    const reserved = new Map<string, string>()
    for (const { lane, perHour } of models.flatMap(({ dedicated }) => dedicated)) {
      const rate = perHour === undefined ? undefined : parseAud(perHour)
      if (rate !== undefined) reserved.set(lane, formatAud(rate))
    }
    for (const [lane, perHour] of reserved) {
      if (current.get(address(lane, null))?.prices?.per_hour !== perHour) await add(lane, null, { per_hour: perHour })
    }
    for (const { model: lane, prices } of current.values()) {
      if (prices?.per_hour !== undefined && !reserved.has(lane)) await add(lane, null, null)
    }
  }

  await reload()
  return {
    reload,
    priceFor,
    priceOn(deployment, model, workspaceId) {
      const price = priceFor(model, workspaceId)
      return deployment.mode === 'dedicated' ? { version: FREE_VERSION, rates: freeRates } : price
    },
    firstPricedAt: (model) => firstAt.get(model.id) ?? 0,
    async syncListPrices(models) {
      for (const model of models) {
        const prices = formatPriceList(model.rates)
        const last = current.get(address(model.id, null))
        if (!last?.prices || !samePrices(last.prices, prices)) await add(model.id, null, prices)
      }
      await syncReservations(models)
      await reload()
    },
    async setWorkspacePrice(model, workspaceId, prices) {
      await add(model.id, workspaceId, prices && { ...formatPriceList(model.rates), ...prices })
      await reload()
    },
    workspacePrices(workspaceId) {
      const own = new Map<string, PriceList>()
      for (const version of current.values()) {
        if (version.workspaceId === workspaceId && version.prices) own.set(version.model, version.prices)
      }
      return own
    },
  }
}

function samePrices(one: PriceList, other: PriceList): boolean {
  const keys = new Set([...Object.keys(one), ...Object.keys(other)]) as Set<keyof PriceList>
  return [...keys].every((key) => one[key] === other[key])
}
