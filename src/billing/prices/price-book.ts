import { listPrices } from '../../catalog/list-prices.ts'
import type { Deployment, Model } from '../../catalog/model.ts'
import {
  asModelPrices,
  closestKinds,
  pricedName,
  pricesByKind,
  readPricedName,
  tierOfKind,
  type ModelPrices,
  type PricesByKind,
} from '../rating/price-kinds.ts'
import type { Price } from '../../engines/job.ts'
import { formatAud, parseAud } from '../../shared/money/money.ts'
import { freeRates, freeVersions, parsePriceList, type PriceList, type Rates } from '../rating/rating.ts'
import { newestRead } from '../../shared/newest-read.ts'
import type { PriceVersion } from '../../workspaces/workspace.ts'
import type { ChangeFeed } from '../../cluster/changes/change-feed.ts'
import type { Clock } from '../../shared/clock.ts'
import type { AccountStore, NewPriceVersion } from '../../workspaces/account-store.ts'

/** The current prices: the catalog's, and those of workspaces that have their own. The history stays in the store. */
export interface PriceBook {
  /** What a workspace pays for a model: for one kind of image, or on a tier. */
  priceFor(model: Model, workspaceId: string, kind?: string): Price
  /** The same on one deployment. Reserved capacity is paid by the hour, so its tokens are free. */
  priceOn(deployment: Deployment, model: Model, workspaceId: string, kind?: string): Price
  /** All the prices that a workspace pays for a model, as an operator would write them. */
  pricesFor(model: Model, workspaceId: string): ModelPrices
  /** Unix ms at which the model first had a price. */
  firstPricedAt(model: Model): number
  /** Stores a new version of every list price that has changed. */
  syncListPrices(models: readonly Model[]): Promise<void>
  /** Gives a workspace its own prices on top of the list prices; null restores the list prices. */
  setWorkspacePrice(model: Model, workspaceId: string, prices: ModelPrices | null): Promise<void>
  workspacePrices(workspaceId: string): ReadonlyMap<string, ModelPrices>
  /**
   * Gives lines of batches a price version of their own, at the normal price if the model has no batch price, so that
   * sums and invoices tell them from other requests.
   */
  priceBatchLines(model: Model, workspaceId: string): Promise<void>
}

/** Other replicas may store prices between reading and writing, but not this often. */
const ATTEMPTS_MAX = 20

/** The current version for each kind, and under '' for everything else. */
type Versions = ReadonlyMap<string, PriceVersion>

/** The prices that a model should have. */
interface ListedPrices {
  readonly model: string
  readonly workspaceId: string | null
  readonly lists: PricesByKind
}

export async function openPriceBook(store: AccountStore, clock: Clock, changes: ChangeFeed): Promise<PriceBook> {
  /** By model, then by workspace; null for the list price. */
  let current = new Map<string, Map<string | null, Versions>>()
  let firstAt = new Map<string, number>()
  const parsed = new WeakMap<PriceVersion, Rates>()

  function* everyPrice(): Generator<Versions, void> {
    for (const workspaces of current.values()) yield* workspaces.values()
  }

  const reload = newestRead(
    () => store.priceVersions(),
    (prices) => {
      const latest = new Map<string, Map<string | null, Map<string, PriceVersion>>>()
      for (const version of prices) {
        const { model, kind } = readPricedName(version.model)
        const workspaces = latest.get(model) ?? new Map<string | null, Map<string, PriceVersion>>()
        const kinds = workspaces.get(version.workspaceId) ?? new Map<string, PriceVersion>()
        latest.set(model, workspaces.set(version.workspaceId, kinds.set(kind, version)))
      }
      current = latest
      firstAt = new Map(prices.toReversed().map((version) => [version.model, version.effectiveFrom]))
    },
  )

  function ratesOf(version: PriceVersion): Rates {
    let rates = parsed.get(version)
    if (!rates) {
      const read = parsePriceList(version.prices ?? {})
      if ('badKey' in read) throw new Error(`price version ${version.id} is unreadable at ${read.badKey}`)
      parsed.set(version, (rates = read))
    }
    return rates
  }

  function versionsFor(model: Model, workspaceId: string): Versions {
    const workspaces = current.get(model.id)
    const own = workspaces?.get(workspaceId)
    const versions = own?.get('')?.prices ? own : workspaces?.get(null)
    if (!versions) throw new Error(`${model.id} has no price version`)
    return versions
  }

  function priceFor(model: Model, workspaceId: string, kind = ''): Price {
    const versions = versionsFor(model, workspaceId)
    const priced = kind && closestKinds(kind).find((it) => versions.get(it)?.prices)
    const version = versions.get(priced ?? '')
    if (!version) throw new Error(`${model.id} has no price version`)
    return { version: version.id, rates: ratesOf(version) }
  }

  /**
   * The versions to store so that a model has these prices; those that are no longer listed end. A tier that had a price
   * keeps a version of its own, at the normal price, so that the version of a row always tells its tier.
   */
  function changesTo({ model, workspaceId, lists }: ListedPrices): readonly NewPriceVersion[] {
    const before = current.get(model)?.get(workspaceId)
    return writingOrder(lists, before).flatMap((kind) => {
      const normal = tierOfKind(kind) === 'default' ? undefined : lists.get('')
      const [last, prices] = [before?.get(kind), lists.get(kind) ?? normal ?? null]
      if (samePrices(last?.prices ?? null, prices)) return []
      return [newVersion(pricedName(model, kind), workspaceId, prices, last)]
    })
  }

  function newVersion(
    name: string,
    workspaceId: string | null,
    prices: PriceList | null,
    last: PriceVersion | undefined,
  ): NewPriceVersion {
    return { model: name, workspaceId, prices, effectiveFrom: clock.now(), latest: last?.id ?? 0 }
  }

  /** Stores all missing versions together: a first start has a price for every model. */
  async function replace(listed: readonly ListedPrices[]): Promise<void> {
    for (let tries = 0; tries < ATTEMPTS_MAX; tries++) {
      const missing = listed.flatMap(changesTo)
      if (missing.length === 0) return
      const added = await store.addPriceVersions(missing)
      if (!added.includes(undefined)) return
      // Replicas that read the same catalog add the same prices: most likely there is nothing left to store.
      await reload()
    }
    throw new Error('other services kept changing prices while these were stored')
  }

  /** A workspace that had its own prices before the model had a batch price gets the batch price, too. */
  function ownPricesWithoutTiers(model: Model): readonly ListedPrices[] {
    const { batch } = listPrices(model)
    if (batch === undefined) return []
    return [...(current.get(model.id) ?? [])].flatMap(([workspaceId, versions]) => {
      if (workspaceId === null || !versions.get('')?.prices || versions.get('flex')?.prices) return []
      const lists = checked({ ...asModelPrices(listsIn(versions)), batch })
      return [{ model: model.id, workspaceId, lists }]
    })
  }

  /** A reserved lane's hourly price starts, changes and ends with its entry in the catalog. */
  async function syncReservations(models: readonly Model[]): Promise<void> {
    const reserved = new Map<string, string>()
    for (const { lane, perHour } of models.flatMap(({ dedicated }) => dedicated)) {
      const rate = perHour === undefined ? undefined : parseAud(perHour)
      if (rate !== undefined) reserved.set(lane, formatAud(rate))
    }
    await replace(
      [...reserved].map(([lane, perHour]) => ({
        model: lane,
        workspaceId: null,
        lists: new Map([['', { per_hour: perHour }]]),
      })),
    )
    const ended = [...everyPrice()].flatMap((versions) => {
      const version = versions.get('')
      const isOver = version?.prices?.per_hour !== undefined && !reserved.has(version.model)
      return isOver ? [newVersion(version.model, null, null, version)] : []
    })
    await store.addPriceVersions(ended)
  }

  /**
   * The clock was fast when these prices were stored, or is slow now. They apply anyway, so store them again with the
   * current time: otherwise rows would be older than their price.
   */
  async function repeatFuturePrices(): Promise<void> {
    const future = [...everyPrice()]
      .flatMap((versions) => [...versions.values()])
      .filter(({ effectiveFrom }) => effectiveFrom > clock.now())
    await store.addPriceVersions(
      future.map((version) => newVersion(version.model, version.workspaceId, version.prices, version)),
    )
  }

  changes.subscribe('prices', reload)
  await reload()
  return {
    priceFor,
    priceOn(deployment, model, workspaceId, kind = '') {
      const price = priceFor(model, workspaceId, kind)
      return deployment.mode === 'dedicated' ? { version: freeVersions[tierOfKind(kind)], rates: freeRates } : price
    },
    pricesFor: (model, workspaceId) => asModelPrices(listsIn(versionsFor(model, workspaceId))),
    firstPricedAt: (model) => firstAt.get(model.id) ?? 0,
    async syncListPrices(models) {
      await repeatFuturePrices()
      await replace(models.map((it) => ({ model: it.id, workspaceId: null, lists: checked(listPrices(it)) })))
      await replace(models.flatMap(ownPricesWithoutTiers))
      await syncReservations(models)
      await changes.announce('prices')
    },
    async setWorkspacePrice(model, workspaceId, prices) {
      const lists = prices ? checked({ ...listPrices(model), ...prices }) : new Map<string, PriceList>()
      await replace([{ model: model.id, workspaceId, lists }])
      await changes.announce('prices')
    },
    async priceBatchLines(model, workspaceId) {
      for (let tries = 0; tries < ATTEMPTS_MAX; tries++) {
        const versions = versionsFor(model, workspaceId)
        const [normal, batch] = [versions.get(''), versions.get('batch')]
        // A model with a price for flex has one for batches.
        if (!normal?.prices || versions.get('flex')?.prices) return
        if (samePrices(batch?.prices ?? null, normal.prices)) return
        await store.addPriceVersions([
          newVersion(pricedName(model.id, 'batch'), normal.workspaceId, normal.prices, batch),
        ])
        await changes.announce('prices')
      }
      throw new Error('other services kept changing prices while these were stored')
    },
    workspacePrices(workspaceId) {
      const own = new Map<string, ModelPrices>()
      for (const versions of everyPrice()) {
        const version = versions.get('')
        if (version?.workspaceId === workspaceId && version.prices) {
          own.set(version.model, asModelPrices(listsIn(versions)))
        }
      }
      return own
    },
  }
}

/**
 * Versions are written one after the other. A reader may see an intermediate state, or the process may end there. In
 * this order, every kind has either its old price or its new one: first kinds that have a price, the closest
 * match first; then the main price (''), which everything else falls back to; then kinds whose price ends, the closest
 * match last. Whether a workspace has its own prices depends on the main price, so none of them applies before that is
 * written.
 */
function writingOrder(lists: PricesByKind, before: Versions | undefined): readonly string[] {
  const kinds = [...new Set([...lists.keys(), ...(before?.keys() ?? [])])].filter((kind) => kind !== '')
  if (!before?.get('')?.prices) return [...kinds, '']
  const closestFirst = kinds.toSorted((one, other) => closestKinds(other).length - closestKinds(one).length)
  const priced = closestFirst.filter((kind) => lists.has(kind))
  const ended = closestFirst.toReversed().filter((kind) => !lists.has(kind))
  return [...priced, '', ...ended]
}

function listsIn(versions: Versions): PricesByKind {
  return new Map([...versions].flatMap(([kind, { prices }]) => (prices ? [[kind, prices] as const] : [])))
}

/** Throws a plain error, because callers have already refused invalid prices. */
function checked(prices: ModelPrices): PricesByKind {
  const lists = pricesByKind(prices)
  if ('badKey' in lists) throw new Error(`${lists.badKey} must be ${lists.rule}`)
  return lists
}

/** A list without prices would equal a missing one, but every list names at least one price. */
function samePrices(one: PriceList | null, other: PriceList | null): boolean {
  const keys = new Set([...Object.keys(one ?? {}), ...Object.keys(other ?? {})]) as Set<keyof PriceList>
  return [...keys].every((key) => one?.[key] === other?.[key])
}
