import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openAccounts } from './accounts/accounts.ts'
import { memoryAdmission } from './admission/memory.ts'
import { openCatalog, watchFile } from './catalog/catalog.ts'
import { openPriceBook } from './catalog/price-book.ts'
import type { Config } from './config.ts'
import { deploymentFor, deploymentsOf, type Deployment, type Model } from './core/catalog.ts'
import { openUpstream } from './engines/upstream.ts'
import { adminApi } from './http/admin-api.ts'
import { publicApi } from './http/public-api.ts'
import { listen, type Listener } from './http/server.ts'
import { memoryRateLimiter } from './limits/memory.ts'
import { remoteImages } from './media/remote-image.ts'
import { createPipeline } from './pipeline.ts'
import type { Clock, Engine, Store } from './ports.ts'
import { publishService } from './running-service.ts'
import { groupCommit } from './store/group-commit.ts'
import { sqliteStore } from './store/sqlite.ts'
import { createTelemetry } from './telemetry.ts'

/** The one place that chooses the parts and puts them together. */
export interface Service {
  readonly url: string
  readonly adminUrl: string
  /** The first key of the first workspace: only on the very first start. */
  readonly firstKey: string | undefined
  readonly models: readonly Model[]
  /** Whether the model could serve the first workspace now. */
  isUp(model: Model): boolean
  /** Reads the catalog again; a mistake in it is logged, and the old one stays. */
  reloadCatalog(): void
  stop(): Promise<void>
}

const FIRST_WORKSPACE = 'default'
/** A store that fails to the last must not keep the service from stopping. */
const LAST_FLUSH_MS = 10_000

export const systemClock: Clock = { now: () => Date.now(), monotonic: () => performance.now() }

export async function startService(config: Config): Promise<Service> {
  const store = await sqliteStore(config.dataDir, { exclusive: true })
  try {
    return await assemble(config, store, systemClock)
  } catch (error) {
    await store.close()
    throw error
  }
}

async function assemble(config: Config, store: Store, clock: Clock): Promise<Service> {
  const interrupted = await store.recoverIntents(clock.now())
  const ledger = groupCommit((batch) => store.writeLedger(batch), clock)
  const admission = memoryAdmission(clock)
  const telemetry = createTelemetry(config.logLevel, { admission, ledger })
  const { log } = telemetry
  if (interrupted > 0)
    log.warn({ requests: interrupted }, 'requests of an earlier run were left open; settled at nothing')

  const accounts = await openAccounts(store, clock)
  const prices = await openPriceBook(store, clock)
  const engines = engineSet({
    healthChanged: (url, healthy) => log.warn({ url, healthy }, healthy ? 'engine is back' : 'engine is down'),
    callFailed: (url, reason) => log.warn({ url, reason }, 'engine failed a call'),
  })
  const watched = config.catalog.file === undefined ? undefined : watchFile(config.catalog.file)
  const catalog = await openCatalog(config.catalog, async (models) => {
    await prices.syncListPrices(models)
    return () => {
      const deployments = models.flatMap(deploymentsOf)
      engines.update(deployments)
      const lanes = new Set(deployments.map((deployment) => deployment.lane))
      for (const lane of admission.status().keys()) if (!lanes.has(lane)) admission.retire(lane)
      for (const { lane, limits } of deployments) admission.setLimits(lane, limits)
    }
  })
  const images = remoteImages(config.imageHosts)
  const pipeline = createPipeline({
    admission,
    ledger,
    clock,
    engineOf: engines.of,
    settled: telemetry.settled,
    random: Math.random,
  })

  let stopping = false
  const isReady = (): boolean => !stopping && ledger.status().healthy
  const isUp = (model: Model, workspace: string): boolean => {
    const deployment = deploymentFor(model, workspace)
    return deployment !== undefined && (engines.of(deployment)?.usable() ?? false)
  }

  const publicListener = await listen(
    publicApi({
      accounts,
      catalog,
      prices,
      admission,
      rateLimiter: memoryRateLimiter(clock),
      pipeline,
      clock,
      telemetry,
      fetchImage: images.fetchImage,
      limits: config,
      isUp,
      isReady,
    }),
    config.host,
    config.port,
  )
  const operatorToken = config.operatorToken ?? keptOperatorToken(config.dataDir)
  const adminListener = await listen(
    adminApi({
      accounts,
      prices,
      catalog,
      store,
      telemetry,
      operatorToken,
      requestsPerMinute: config.requestsPerMinute,
      isReady,
    }),
    config.adminHost,
    config.adminPort,
  )
  const firstKey = accounts.workspaces().length === 0 ? await createFirstKey(accounts) : undefined
  const adminUrl = urlOf(adminListener)
  const unpublish = publishService(config.dataDir, { adminUrl, operatorToken, pid: process.pid })
  const unwatch = watched?.onChange(reloadCatalog)

  function reloadCatalog(): void {
    catalog.reload().then(
      () => log.info({ models: catalog.models().length }, 'the catalog was reloaded'),
      (error: Error) => log.error({ reason: error.message }, 'the catalog has a mistake; the old one stays'),
    )
  }

  return {
    url: urlOf(publicListener),
    adminUrl,
    firstKey,
    models: catalog.models(),
    isUp: (model) => isUp(model, FIRST_WORKSPACE),
    reloadCatalog,
    async stop() {
      stopping = true
      log.info('stopping: waiting requests are sent away, running ones finish')
      unwatch?.()
      publicListener.drain()
      admission.close()
      await publicListener.close(config.drainMs)
      await adminListener.close(1000)
      unpublish()
      await Promise.race([ledger.flush(), sleep(LAST_FLUSH_MS, undefined, { ref: false })])
      await Promise.all([engines.close(), images.close()])
      await store.close()
      await telemetry.close()
    },
  }
}

/** The engines of all deployments; a reload keeps those whose description did not change. */
function engineSet(events: Parameters<typeof openUpstream>[1]) {
  let current = new Map<string, { description: string; engine: Engine }>()
  return {
    of: (deployment: Deployment): Engine | undefined => current.get(deployment.lane)?.engine,
    update(deployments: readonly Deployment[]): void {
      const next: typeof current = new Map()
      for (const { lane, engine: description } of deployments) {
        if (!description) continue
        const text = JSON.stringify(description)
        const same = current.get(lane)
        const keep = same?.description === text ? same : undefined
        next.set(lane, keep ?? { description: text, engine: openUpstream(description, events) })
      }
      for (const [lane, old] of current) if (next.get(lane) !== old) void old.engine.close()
      current = next
    },
    async close(): Promise<void> {
      await Promise.all([...current.values()].map(({ engine }) => engine.close()))
    },
  }
}

async function createFirstKey(accounts: Awaited<ReturnType<typeof openAccounts>>): Promise<string> {
  const { name } = await accounts.createWorkspace(FIRST_WORKSPACE)
  return (await accounts.createKey(name)).key
}

/** Where the operator gave no token, one is made and kept where only the operator can read it. */
function keptOperatorToken(dataDir: string): string {
  const file = join(dataDir, 'operator-token')
  try {
    return readFileSync(file, 'utf8').trim()
  } catch {
    const token = `weir_operator_${randomBytes(32).toString('hex')}`
    writeFileSync(file, `${token}\n`, { mode: 0o600 })
    return token
  }
}

function urlOf(listener: Listener): string {
  const { host, port } = listener.address
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}
