import type { Logger } from 'pino'
import { openCatalog, type Catalog } from './catalog.ts'
import type { CatalogSource } from './file.ts'
import type { LaneSettings } from './lane-settings.ts'
import type { PriceBook } from '../billing/prices/price-book.ts'
import { ConfigError } from '../shared/checked-yaml.ts'
import { catalogWarnings } from './warnings.ts'
import { deploymentsOf, type Deployment, type Model } from './model.ts'
import { untakenParameters, untakenWarning } from '../engines/dialects/listed-parameters.ts'
import { requireKnown } from '../local-models/catalog-models.ts'
import type { Admission } from '../queue/admission.ts'
import type { ChangeFeed } from '../cluster/changes/change-feed.ts'

/** How a catalog is put in force: its prices are stored, then engines and queues are updated. A part of compose.ts. */
export interface CatalogInForceParts {
  readonly source: CatalogSource
  readonly lanes: LaneSettings
  readonly prices: PriceBook
  readonly engines: { update(deployments: readonly Deployment[]): void }
  readonly admission: Pick<Admission, 'setLanes'>
  /** How many processes of the service share this machine. */
  readonly processes: number
  readonly changes: ChangeFeed
  workspaceNames(): readonly string[]
  readonly log: Pick<Logger, 'info' | 'warn'>
}

/** Node's fetch and several SDKs give up after 300 s without headers, and the answer itself takes a while. */
const CLIENT_PATIENCE_MS = 240_000

/** Each worker would start the engine for itself, on the same port. */
function refuseRun(models: readonly Model[]): void {
  const lane = models.flatMap(deploymentsOf).find(({ engine }) => engine?.run)?.lane
  if (lane === undefined) return
  throw new ConfigError(
    `${lane}: an engine with run needs a service of one process; start it without --workers, or start the engine yourself and give its urls`,
  )
}

export async function openCatalogInForce(parts: CatalogInForceParts): Promise<Catalog> {
  const { source, lanes, prices, engines, admission, changes, log } = parts
  const catalog = await openCatalog(source, async (models) => {
    requireKnown(models)
    if (parts.processes > 1) refuseRun(models)
    await prices.syncListPrices(models)
    for (const lane of await lanes.dropReplaced(models)) {
      log.info({ lane }, 'the limits in the file have changed: they replace those that an operator had set')
    }
    return () => {
      const deployments = models.flatMap(deploymentsOf)
      engines.update(deployments)
      admission.setLanes(new Map(deployments.map(({ lane, limits }) => [lane, limits])))
      warn(models)
    }
  })

  function warn(models: readonly Model[]): void {
    for (const { lane, limits, engine } of models.flatMap(deploymentsOf)) {
      // By default, requests wait as long as their engine may take to start.
      if (limits.maxWaitMs > Math.max(CLIENT_PATIENCE_MS, engine?.run?.startTimeoutMs ?? 0)) {
        log.warn(
          { lane, max_wait_ms: limits.maxWaitMs },
          'max_wait_ms is above 240 s; many clients give up after 300 s',
        )
      }
    }
    for (const warning of catalogWarnings(models, parts.workspaceNames())) log.warn(`catalog: ${warning}`)
    for (const listed of untakenParameters(models)) log.warn(listed, `catalog: ${untakenWarning(listed)}`)
  }

  changes.subscribe('lanes', async () => {
    await lanes.reload()
    await catalog.change(lanes.applied)
  })
  return catalog
}
