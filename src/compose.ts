import { openAccounts } from './workspaces/accounts.ts'
import { OPERATOR } from './workspaces/sessions/sessions.ts'
import { readCertificate } from './server/certificate.ts'
import { watchFile } from './catalog/catalog.ts'
import { isFirstWorker, type Config } from './config.ts'
import { ApiError } from './shared/errors.ts'
import { deploymentFor, type Model } from './catalog/model.ts'
import { modelsToFetch } from './local-models/catalog-models.ts'
import type { FetchEvents } from './local-models/local-models.ts'
import { adminApi } from './server/api/admin-api.ts'
import { engineCommands } from './engines/routes/on-demand.ts'
import { replicaCommands } from './cluster/routes/replicas.ts'
import { publicApi } from './server/api/public-api.ts'
import { listen, urlOf, type Listener } from './server/server.ts'
import { measureAudio } from './inference/audio/measure/measure.ts'
import type { AlarmClock } from './shared/clock.ts'
import { listenForCommands } from './operate/command-socket.ts'
import { publishService, withdrawService } from './operate/running-service.ts'
import { fetchEvents } from './service-log.ts'
import { systemClock } from './shared/system-clock.ts'
import { liveSettings, settingsAnswer } from './operate/reload/live-settings.ts'
import { portOf } from './cluster/workers/worker-port.ts'
import { metricsOfAll } from './operate/telemetry/metrics-of-workers.ts'
import { type LogDestination, createTelemetry, type Telemetry } from './operate/telemetry/telemetry.ts'
import { diskSpace } from './operate/system-disk.ts'
import { version } from './operate/version.ts'
import type { SecureContextOptions } from 'node:tls'
import type { Readiness } from './operate/routes/health.ts'
import { FIRST_WORKSPACE, openParts, type Parts } from './compose/open-parts.ts'

/** The only place that chooses the parts and wires them together. Everything it opens is closed in reverse order. */
export interface Service {
  readonly url: string
  readonly adminUrl: string
  /** The key of the first workspace. Only set on the very first start. */
  readonly firstKey: string | undefined
  /** An address that signs a person in to a console, once. undefined: the workspace does not exist. */
  consoleLink(): Promise<string | undefined>
  operatorConsoleLink(): Promise<string>
  readonly models: readonly Model[]
  /** Whether the model could serve the first workspace now. */
  isUp(model: Model): boolean
  /** Resolves when the service cannot continue, because it can no longer record requests. */
  readonly failed: Promise<Error>
  /** Resolves when this replica was asked to drain, and its requests have finished. */
  readonly drained: Promise<void>
  /** Reads the catalog again. A mistake in it is logged, and the old catalog stays. */
  reloadCatalog(): void
  /** Lets running requests finish, then closes everything. Further calls wait for the first. */
  stop(): Promise<void>
}

/** Operator requests are short. */
const ADMIN_DRAIN_MS = 1000

/** How the start is shown to a person. */
export interface Display {
  /** Downloads of models. */
  readonly fetching?: Partial<FetchEvents>
  /** Takes the lines of the log instead of stderr. */
  readonly log?: LogDestination
}

export async function startService(config: Config, display: Display = {}): Promise<Service> {
  // If the start fails, this closes what was opened so far.
  await using opened = new AsyncDisposableStack()
  const service = await assemble(config, systemClock, display, opened)
  const everything = opened.move()
  let stopped: Promise<void> | undefined
  return { ...service, stop: () => (stopped ??= everything.disposeAsync()) }
}

async function assemble(
  config: Config,
  clock: AlarmClock,
  { fetching = {}, log: logTo }: Display,
  opened: AsyncDisposableStack,
): Promise<Omit<Service, 'stop'>> {
  // Watch the files before reading them, so that no change is missed.
  const tlsFiles = Object.values(config.tls ?? {}).map(watchFile)
  const certificate = config.tls && readCertificate(config.tls)
  const telemetry = opened.adopt(createTelemetry(config.logLevel, version, logTo), (it) => it.close())
  const { log } = telemetry
  const failed = Promise.withResolvers<Error>()
  const parts = await openParts({ config, clock, opened, telemetry, settings: liveSettings(config) }, failed.resolve)
  const { accounts, catalog, changes, downloads, draining, engines, reloads, sessions, watched } = parts

  withdrawService(config.dataDir)
  opened.defer(() => withdrawService(config.dataDir))
  const commands = await openCommands(parts, (workspace) =>
    workspace === undefined ? operatorConsoleLink() : consoleLink(workspace),
  )
  const adminListener = await openAdminListener(parts)
  const publicListener = await openPublicListener(parts, certificate?.tls)
  parts.listeners.public = publicListener
  const firstKey = accounts.workspaces().length === 0 ? await createFirstKey(accounts) : undefined
  const url = urlOf(publicListener)
  const adminUrl = urlOf(
    adminListener ?? { scheme: 'http', address: { host: config.adminHost, port: config.adminPort } },
  )
  publishService(config.dataDir, { url, adminUrl, socket: commands.socket, pid: process.pid })

  changes.subscribe('catalog', async () => {
    await catalog.reload()
    log.info({ models: catalog.models().length }, 'catalog reloaded')
    fetchMissing()
  })
  for (const file of watched) opened.defer(file.onChange(reloads.files))
  for (const file of tlsFiles) opened.defer(file.onChange(() => renewCertificate(config, publicListener, telemetry)))
  if (certificate) {
    telemetry.certificateServed(certificate.validUntil)
    log.info({ names: certificate.names, valid_until: certificate.validUntil }, 'serving HTTPS')
  }
  fetchMissing()

  async function consoleLink(workspace: string): Promise<string> {
    return `${urlOf(publicListener)}/console#link=${(await sessions.issueLink(workspace)).secret}`
  }

  async function operatorConsoleLink(): Promise<string> {
    return `${adminUrl}/console#link=${(await parts.operatorSessions.issueLink(OPERATOR)).secret}`
  }

  function fetchMissing(): void {
    const missing = modelsToFetch(catalog.models(), config.file === undefined)
    engines.local.pullMissing(missing, fetchEvents(telemetry, [downloads, parts.downloadAlerts, fetching]))
  }

  return {
    url,
    adminUrl,
    firstKey,
    async consoleLink() {
      const isThere = accounts.workspaces().some(({ name }) => name === FIRST_WORKSPACE)
      return isThere ? consoleLink(FIRST_WORKSPACE) : undefined
    },
    operatorConsoleLink,
    models: catalog.models(),
    isUp(model) {
      const deployment = deploymentFor(model, FIRST_WORKSPACE)
      return deployment !== undefined && (engines.of(deployment)?.usable() ?? false)
    },
    failed: failed.promise,
    drained: draining.finished,
    reloadCatalog: reloads.files,
  }
}

async function openCommands(
  parts: Parts,
  consoleLink: (workspace: string | undefined) => Promise<string>,
): Promise<Awaited<ReturnType<typeof listenForCommands>>> {
  const { config, settings, opened, clock, telemetry, ledger, refusals, accounts, coordination, store, reloads } = parts
  const commands = await listenForCommands(config.dataDir, {
    reloads,
    settings: () => settingsAnswer(config, settings),
    settled: async () => void (await Promise.all([ledger.readable(), refusals.written()])),
    lendKey: accounts.lendKey,
    consoleLink,
    removeModel: parts.localModels.remove,
    contradictedCounts: telemetry.contradictedCounts,
    cacheUse: () => telemetry.cacheUse.entries(undefined),
    metrics: telemetry.metrics,
    reconciled: (problems) => telemetry.reconciled(problems, clock.now()),
    replicas: replicaCommands(coordination, { audit: store, clock }),
    engines: engineCommands(parts.engines, { audit: store, clock }),
  })
  opened.defer(() => commands.close())
  return commands
}

/** Among workers, the first one answers the operator for all; undefined for the others. */
async function openAdminListener(parts: Parts): Promise<Listener | undefined> {
  const { config, opened, telemetry, settings, store, readStore, engines, downloads, reloads } = parts
  const application = adminApi({
    ...parts,
    store: readStore,
    invoiceFonts: config.invoice.fonts,
    metrics: () => metricsOfAll(config, telemetry),
    audit: store,
    needRestart: reloads.needRestart,
    engines: () =>
      [...engines.addresses()].map(([lane, address]) => ({ lane, ...address, ...engines.failures.of(address.url) })),
    readEngineLoads: engines.readLoads,
    onDemand: engines.onDemand,
    engineOf: engines.of,
    downloads: downloads.list,
    limits: settings,
    readiness: () => readinessOf(parts),
    diskSpace: () => diskSpace(config.dataDir),
  })
  const isOperated = isFirstWorker(config)
  const adminListener = isOperated ? await listen(application, config.adminHost, config.adminPort) : undefined
  opened.defer(() => adminListener?.close(ADMIN_DRAIN_MS))
  return adminListener
}

async function openPublicListener(parts: Parts, tls: SecureContextOptions | undefined): Promise<Listener> {
  const { config, opened, telemetry, settings, store, readStore, memory, live, draining, port } = parts
  const publicListener = await listen(
    // By name, because it must not get what is the operator's.
    publicApi({
      accounts: parts.accounts,
      sessions: parts.sessions,
      signIn: parts.signIn,
      catalog: parts.catalog,
      prices: parts.prices,
      admission: parts.admission,
      rateLimiter: parts.rateLimiter,
      clock: parts.clock,
      pipeline: parts.pipeline,
      telemetry,
      tracing: parts.tracing,
      refusals: parts.refusals,
      audit: store,
      fetchImages: parts.images.fetchImages,
      imageLimits: config.imageLimits,
      changingLines: config.changingLines,
      files: parts.files,
      audio: { spool: parts.spool, measure: measureAudio, maxUploadBytes: config.audio.maxUploadBytes },
      batchFiles: parts.batchFiles,
      batches: parts.batches,
      batchLimits: config.batches,
      spool: parts.spool,
      usage: readStore,
      invoices: readStore,
      reader: readStore,
      live,
      downloads: parts.downloads.list,
      consoleModels: config.consoleModels,
      invoicing: parts.invoicing,
      rowLinks: parts.rowLinks,
      invoiceFonts: config.invoice.fonts,
      spending: parts.spending,
      limits: settings,
      engineOf: parts.engines.of,
      readiness: () => readinessOf(parts),
      isDraining: draining.isOn,
    }),
    config.host,
    config.port,
    { memory, openPort: portOf(config.worker), tls },
  )
  if (config.worker !== undefined) port.leave = publicListener.drain
  opened.defer(async () => {
    telemetry.log.info('stopping: waiting requests are refused, running requests finish')
    // Open live streams of consoles would keep the service from stopping.
    live.close()
    publicListener.drain()
    draining.begin()
    await publicListener.close(draining.leftMs())
  })
  return publicListener
}

function readinessOf({ recordReadiness, engines, coordination, draining }: Parts): Readiness {
  const addresses = [...engines.addresses()].map(([, { isUp }]) => isUp)
  return {
    ...recordReadiness(),
    engines: { up: addresses.filter((isUp) => isUp).length, down: addresses.filter((isUp) => !isUp).length },
    coordination: coordination.state(),
    isDraining: draining.isOn(),
  }
}

/** The certificate and the key change one after the other. Until they match, the old certificate stays in use. */
function renewCertificate({ tls }: Config, publicListener: Listener, telemetry: Telemetry): void {
  if (!tls) return
  const { log } = telemetry
  try {
    const renewed = readCertificate(tls)
    publicListener.renew(renewed.tls)
    telemetry.certificateServed(renewed.validUntil)
    log.info({ names: renewed.names, valid_until: renewed.validUntil }, 'certificate renewed')
  } catch (error) {
    log.error({ reason: (error as Error).message }, 'the changed certificate cannot be used; the old one stays')
  }
}

/** undefined when another replica, which started at the same time, has created the workspace. */
async function createFirstKey(accounts: Awaited<ReturnType<typeof openAccounts>>): Promise<string | undefined> {
  try {
    await accounts.createWorkspace(FIRST_WORKSPACE)
  } catch (error) {
    if (error instanceof ApiError && error.code === 'conflict') return undefined
    throw error
  }
  return (await accounts.createKey(FIRST_WORKSPACE)).key
}
