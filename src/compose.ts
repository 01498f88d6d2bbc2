import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openAccounts } from './accounts/accounts.ts'
import { memoryAdmission } from './admission/memory.ts'
import { openInvoicing } from './billing/invoices.ts'
import { openSpending } from './billing/spending.ts'
import { openCatalog, watchFile } from './catalog/catalog.ts'
import { openPriceBook } from './catalog/price-book.ts'
import type { Config } from './config.ts'
import { deploymentFor, deploymentsOf, type Deployment, type EngineDescription, type Model } from './core/catalog.ts'
import { ConfigError } from './core/checked-yaml.ts'
import { localModels, type FetchEvents, type LocalModels } from './embedded/service/local-models.ts'
import { findModel } from './embedded/manifest/manifest.ts'
import { formatAud } from './core/money/money.ts'
import { openUpstream, type UpstreamEvents } from './engines/upstream.ts'
import { localFiles } from './files/local.ts'
import { s3Files } from './files/s3.ts'
import { adminApi } from './http/admin/admin-api.ts'
import { publicApi } from './http/public/public-api.ts'
import { listen, type Listener } from './http/server.ts'
import { memoryRateLimiter } from './rate-limit/memory.ts'
import { measureAudio } from './media/audio/measure.ts'
import { remoteImages } from './media/remote-image.ts'
import { openSpool } from './media/spool.ts'
import { createPipeline } from './pipeline/pipeline.ts'
import type { Clock } from './ports/clock.ts'
import type { Engine } from './ports/engine.ts'
import type { FileStore } from './ports/files.ts'
import type { Store } from './ports/store.ts'
import { publishService } from './running-service.ts'
import { groupCommit } from './ledger/group-commit.ts'
import { sqliteStore } from './store/sqlite.ts'
import { systemClock } from './system-clock.ts'
import { createTelemetry } from './telemetry/telemetry.ts'

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
/** Node's fetch and several SDKs give up after 300 s without headers, and the answer itself takes a while. */
const SAT_OUT_MS = 240_000
/** A store that fails to the last must not keep the service from stopping. */
const LAST_FLUSH_MS = 10_000

export async function startService(config: Config, fetching: Partial<FetchEvents> = {}): Promise<Service> {
  const store = await sqliteStore(config.dataDir, { exclusive: true })
  // Reports read for as long as they like: beside the ledger's writer, not before it.
  const reader = await sqliteStore(config.dataDir, { exclusive: false })
  try {
    return await assemble(config, { store, reader }, systemClock, fetching)
  } catch (error) {
    await Promise.all([store.close(), reader.close()])
    throw error
  }
}

async function assemble(
  config: Config,
  { store, reader }: { readonly store: Store; readonly reader: Store },
  clock: Clock,
  fetching: Partial<FetchEvents>,
): Promise<Service> {
  const interrupted = await store.recoverIntents(clock.now())
  const ledger = groupCommit((batch) => store.writeLedger(batch), clock)
  const admission = memoryAdmission(clock)
  const telemetry = createTelemetry(config.logLevel, { admission, ledger })
  const { log } = telemetry
  if (interrupted > 0)
    log.warn({ requests: interrupted }, 'requests of an earlier run were left open; settled at nothing')

  const accounts = await openAccounts(store, clock)
  const prices = await openPriceBook(store, clock)
  const spending = await openSpending(store, clock, {
    limitReached({ name, spendLimit }, spent) {
      telemetry.spendLimitReached(name)
      const limit = formatAud(spendLimit?.amount ?? 0n)
      log.warn({ workspace: name, limit, spent: formatAud(spent), soft: spendLimit?.isSoft }, 'spend limit reached')
    },
  })
  const engineEvents: UpstreamEvents = {
    healthChanged: (url, healthy) => log.warn({ url, healthy }, healthy ? 'engine is back' : 'engine is down'),
    callFailed: (url, reason) => log.warn({ url, reason }, 'engine failed a call'),
  }
  const local = localModels({
    directory: config.modelsDir,
    environment: config.environment,
    log: ({ runtime, level, message }) => log[level]({ runtime }, message),
  })
  const engines = engineSet((description) =>
    description.kind === 'embedded'
      ? local.engine(description.model, (socketPath) =>
          openUpstream({ ...description, urls: [`unix:${socketPath}`] }, engineEvents, { watch: false }),
        )
      : openUpstream(description, engineEvents),
  )
  const watched = config.catalog.file === undefined ? undefined : watchFile(config.catalog.file)
  const catalog = await openCatalog(config.catalog, async (models) => {
    requireKnown(models, local)
    await prices.syncListPrices(models)
    return () => {
      const deployments = models.flatMap(deploymentsOf)
      engines.update(deployments)
      const lanes = new Set(deployments.map((deployment) => deployment.lane))
      for (const lane of admission.status().keys()) if (!lanes.has(lane)) admission.retire(lane)
      for (const { lane, limits } of deployments) {
        admission.setLimits(lane, limits)
        if (limits.maxWaitMs > SAT_OUT_MS) {
          log.warn({ lane, max_wait_ms: limits.maxWaitMs }, 'max_wait_ms is above 240 s: many clients give up at 300 s')
        }
      }
    }
  })
  const images = remoteImages(config.imageHosts, config.imageLimits)
  const files = openFiles(config, () => urlOf(publicListener), clock)
  const spool = openSpool(join(config.dataDir, 'spool'), config.audio.maxSpoolBytes)
  const pipeline = createPipeline({
    admission,
    ledger,
    spending,
    clock,
    engineOf: engines.of,
    priceOf: ({ deployment, model, media }, { workspace }) =>
      prices.priceOn(deployment, model, workspace.id, media?.imageKind),
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
      fetchImages: images.fetchImages,
      imageLimits: config.imageLimits,
      files,
      audio: { spool, measure: measureAudio, maxUploadBytes: config.audio.maxUploadBytes },
      usage: reader,
      spending,
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
      store: reader,
      invoicing: openInvoicing(reader, clock, config.seller),
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
  const unpublish = publishService(config.dataDir, {
    url: urlOf(publicListener),
    adminUrl,
    operatorToken,
    pid: process.pid,
  })
  const unwatch = watched?.onChange(reloadCatalog)
  fetchMissing()

  function fetchMissing(): void {
    local.pullMissing(modelsToFetch(config, catalog.models()), {
      progress: (progress) => fetching.progress?.(progress),
      ready(slug) {
        log.info({ model: slug }, 'model is ready')
        fetching.ready?.(slug)
      },
      failed(slug, reason) {
        log.warn({ model: slug, reason }, 'model could not be fetched; trying again in half a minute')
        fetching.failed?.(slug, reason)
      },
    })
  }

  function reloadCatalog(): void {
    catalog.reload().then(
      () => {
        log.info({ models: catalog.models().length }, 'the catalog was reloaded')
        fetchMissing()
      },
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
      await Promise.all([engines.close(), local.close(), images.close(), files?.close()])
      await Promise.all([store.close(), reader.close()])
      await telemetry.close()
    },
  }
}

function openFiles(config: Config, listenerUrl: () => string, clock: Clock): FileStore | undefined {
  const files = config.files()
  if (files?.kind === 's3') return s3Files(files, clock)
  const publicUrl = (): string => files?.publicUrl ?? listenerUrl()
  return files && localFiles({ ...files, dataDir: config.dataDir, publicUrl }, clock)
}

/** A catalog that names a model nobody can run is refused as a whole, as any other mistake in it. */
function requireKnown(models: readonly Model[], local: LocalModels): void {
  for (const { lane, engine } of models.flatMap(deploymentsOf)) {
    if (engine?.kind === 'embedded' && !local.knows(engine.model)) {
      throw new ConfigError(
        `${lane}: the embedded engine does not know the model "${engine.model}"; see weir models list`,
      )
    }
  }
}

/** What a start fetches: what an operator's own catalog names, or the smaller ones of the default catalog. */
function modelsToFetch(config: Config, models: readonly Model[]): readonly string[] {
  const named = models
    .flatMap(deploymentsOf)
    .flatMap(({ engine }) => (engine?.kind === 'embedded' ? [engine.model] : []))
  return config.file === undefined ? named.filter((slug) => findModel(slug)?.delivery === 'default') : named
}

/** The engines of all deployments; a reload keeps those whose description did not change. */
function engineSet(open: (description: EngineDescription) => Engine) {
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
        next.set(lane, keep ?? { description: text, engine: open(description) })
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
