import { createHmac } from 'node:crypto'
import { join } from 'node:path'
import { openAccounts } from './workspaces/accounts.ts'
import { keptOperatorToken } from './workspaces/sessions/operator-token.ts'
import { openSessions, OPERATOR } from './workspaces/sessions/sessions.ts'
import { workspaceSessions } from './workspaces/sessions/workspace-sessions.ts'
import { liveFeed } from './queue/live-feed.ts'
import { openInvoicing } from './billing/invoices/invoices.ts'
import { openRowLinks } from './billing/invoices/rows/row-links.ts'
import { openBookkeeping } from './bookkeeping.ts'
import { readCertificate } from './server/certificate.ts'
import { openCatalogInForce } from './catalog/catalog-in-force.ts'
import { watchFile } from './catalog/catalog.ts'
import { openLaneSettings } from './catalog/lane-settings.ts'
import { openPriceBook } from './billing/prices/price-book.ts'
import { CONFIG_FILE, type Config } from './config.ts'
import { byteBudget } from './shared/byte-budget.ts'
import { diskRoom, type DiskRoom } from './shared/disk-room.ts'
import { ApiError } from './shared/errors.ts'
import { deploymentFor, type Model } from './catalog/model.ts'
import { modelsToFetch } from './local-models/catalog-models.ts'
import { downloadList } from './local-models/downloads.ts'
import type { FetchEvents } from './local-models/local-models.ts'
import { localFiles } from './server/files/local.ts'
import { s3Files } from './server/files/s3.ts'
import { adminApi } from './server/api/admin-api.ts'
import { replicaCommands } from './cluster/routes/replicas.ts'
import { publicApi } from './server/api/public-api.ts'
import { listen, urlOf } from './server/server.ts'
import { measureAudio } from './inference/audio/measure/measure.ts'
import { remoteImages } from './inference/request/remote-image.ts'
import { openSpool } from './server/uploads/spool.ts'
import { createPipeline } from './inference/pipeline/pipeline.ts'
import type { AlarmClock, Clock } from './shared/clock.ts'
import type { FileStore } from './server/files/files.ts'
import { listenForCommands } from './operate/command-socket.ts'
import { publishService, withdrawService } from './operate/running-service.ts'
import { coordinationEvents, fetchEvents, refusalsFailed, spendEvents } from './service-log.ts'
import { openSpendControl } from './workspaces/spend-limits/spend-control.ts'
import { systemClock } from './shared/system-clock.ts'
import { diskSpace } from './operate/system-disk.ts'
import { openCoordination } from './open-coordination.ts'
import { openDraining } from './operate/draining.ts'
import { liveSettings, settingsAnswer } from './operate/reload/live-settings.ts'
import { openEngines } from './open-engines.ts'
import { openReloading } from './operate/reload/reloading.ts'
import { portOf } from './cluster/workers/worker-port.ts'
import { metricsOfAll } from './operate/telemetry/metrics-of-workers.ts'
import { type LogDestination, createTelemetry } from './operate/telemetry/telemetry.ts'
import { openRefusals } from './billing/refused-requests/refusal-recorder.ts'
import { version } from './operate/version.ts'

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

const FIRST_WORKSPACE = 'default'
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
  const settings = liveSettings(config)
  const { dataDir } = config
  const bookkeeping = opened.adopt(await openBookkeeping(config, clock, telemetry, failed.resolve), (it) => it.close())
  const { store, readStore, ledger } = bookkeeping
  const refusals = opened.adopt(
    openRefusals({ store, reader: readStore, clock, failed: refusalsFailed(telemetry) }),
    (it) => it.close(),
  )
  /** Other workers accept the connections of the shared port. */
  let leaveThePort = (): void => {}
  const draining = openDraining({
    admission: () => shared.admission,
    clock,
    drainMs: () => settings.drainMs,
    begun: () => leaveThePort(),
  })
  const shared = opened.adopt(
    await openCoordination(
      config.redisUrl,
      clock,
      { version, ledger: () => ledger.status(), isDraining: draining.isOn },
      coordinationEvents(telemetry, draining),
    ),
    (it) => it.close(),
  )
  const { admission, rateLimiter, changes, coordination } = shared
  const live = opened.adopt(
    liveFeed(admission, clock, () => coordination.replicas()),
    (it) => it.close(),
  )
  const downloads = downloadList()
  const memory = byteBudget(config.maxRequestMemoryBytes)

  const accounts = await openAccounts(store, clock, changes)
  const sessions = workspaceSessions(accounts, openSessions(store, clock, changes))
  const operatorToken = config.operatorToken ?? keptOperatorToken(config.sharedDir)
  // Sessions are hashed with the operator token, so they are not found after it changes.
  const operatorSessions = openSessions(store, clock, changes, (secret) =>
    createHmac('sha256', operatorToken).update(secret).digest('hex'),
  )
  const prices = await openPriceBook(store, clock, changes)
  const spending = opened.adopt(
    await openSpendControl({
      store: readStore,
      ledger,
      clock,
      accounts,
      link: shared.link,
      journal: bookkeeping.journal,
      events: spendEvents(telemetry),
    }),
    (it) => it.close(),
  )
  const lanes = await openLaneSettings(store, changes)
  const engines = opened.adopt(openEngines(config, telemetry, lanes), (it) => it.close())
  const { local } = engines
  telemetry.measure({ admission, coordination, ledger, memory, engineAddresses: engines.addresses })
  // A service that started without a file notices when one appears, and logs that it needs a restart.
  const watched = [...new Set([config.file ?? CONFIG_FILE, config.catalog.file])].flatMap((file) =>
    file ? [watchFile(file)] : [],
  )
  const catalogSource = { file: config.catalog.file, read: () => lanes.applied(config.catalog.read()) }
  const catalog = await openCatalogInForce({
    source: catalogSource,
    lanes,
    prices,
    engines,
    admission,
    local,
    changes,
    // The first start creates the workspace later than this.
    workspaceNames: () => [FIRST_WORKSPACE, ...accounts.workspaces().map(({ name }) => name)],
    log,
  })
  const images = opened.adopt(remoteImages(config.imageHosts, config.imageLimits), (it) => it.close())
  const disk = diskRoom({ space: () => diskSpace(dataDir), now: clock.monotonic, processes: config.processes })
  const files = openFiles(config, () => urlOf(publicListener), clock, disk)
  opened.defer(() => files?.close())
  const spool = openSpool({ folder: join(dataDir, 'spool'), maxBytes: config.audio.maxSpoolBytes, disk })
  const pipeline = createPipeline({
    admission,
    ledger,
    spending,
    clock,
    engineOf: engines.of,
    priceOf: prices.priceOn,
    admitted: live.admitted,
    settled: telemetry.settled,
    pastLimit: telemetry.pastLimit,
    contradicted: telemetry.contradicted,
    cacheUsed: telemetry.cacheUsed,
    random: Math.random,
  })

  const readiness = () => {
    const addresses = [...engines.addresses()].map(([, { isUp }]) => isUp)
    return {
      ...bookkeeping.readiness(),
      engines: { up: addresses.filter((isUp) => isUp).length, down: addresses.filter((isUp) => !isUp).length },
      coordination: coordination.state(),
      isDraining: draining.isOn(),
    }
  }

  // Documents are computed from the read store. Their writes use the ledger's connection, so that both are serialized.
  const { issueInvoice, addCredit, correctRow, beginNote, continueNote, finishNote } = store
  const invoicing = openInvoicing(
    { ...readStore, issueInvoice, addCredit, correctRow, beginNote, continueNote, finishNote },
    clock,
    config.seller,
  )
  const rowLinks = openRowLinks(store, clock, { publicUrl: config.seller?.publicUrl, days: config.invoice.linkDays })
  invoicing
    .finishCredit()
    .catch((error: Error) =>
      log.warn({ reason: error.message }, 'an unfinished adjustment note or invoice is left for the next start'),
    )

  const reloads = openReloading({ config, settings, catalog, changes, log })
  withdrawService(dataDir)
  opened.defer(() => withdrawService(dataDir))
  const commands = await listenForCommands(dataDir, {
    reloads,
    settings: () => settingsAnswer(config, settings),
    settled: async () => void (await Promise.all([ledger.readable(), refusals.written()])),
    lendKey: accounts.lendKey,
    consoleLink: (workspace) => (workspace === undefined ? operatorConsoleLink() : consoleLink(workspace)),
    contradictedCounts: telemetry.contradictedCounts,
    cacheUse: () => telemetry.cacheUse.entries(undefined),
    metrics: telemetry.metrics,
    replicas: replicaCommands(coordination, { audit: store, clock }),
  })
  opened.defer(() => commands.close())
  const adminApplication = adminApi({
    accounts,
    sessions,
    prices,
    catalog,
    reloads,
    store: readStore,
    invoicing,
    rowLinks,
    invoiceFonts: config.invoice.fonts,
    telemetry: { ...telemetry, metrics: () => metricsOfAll(config, telemetry) },
    refusals,
    operatorToken,
    operatorSessions,
    audit: store,
    clock,
    live,
    catalogSource,
    needRestart: reloads.needRestart,
    lanes,
    engines: () =>
      [...engines.addresses()].map(([lane, address]) => ({ lane, ...address, ...engines.failures.of(address.url) })),
    engineOf: engines.of,
    downloads: downloads.list,
    limits: settings,
    coordination,
    readiness,
  })
  // Among workers, the first one answers the operator for all.
  const isOperated = (config.worker ?? 1) === 1
  const adminListener = isOperated ? await listen(adminApplication, config.adminHost, config.adminPort) : undefined
  opened.defer(() => adminListener?.close(ADMIN_DRAIN_MS))
  const publicListener = await listen(
    publicApi({
      accounts,
      sessions,
      catalog,
      prices,
      admission,
      rateLimiter,
      clock,
      pipeline,
      telemetry,
      refusals,
      audit: store,
      fetchImages: images.fetchImages,
      imageLimits: config.imageLimits,
      changingLines: config.changingLines,
      files,
      audio: { spool, measure: measureAudio, maxUploadBytes: config.audio.maxUploadBytes },
      usage: readStore,
      invoices: readStore,
      reader: readStore,
      live,
      downloads: downloads.list,
      consoleModels: config.consoleModels,
      invoicing,
      rowLinks,
      invoiceFonts: config.invoice.fonts,
      spending,
      limits: settings,
      engineOf: engines.of,
      readiness,
      isDraining: draining.isOn,
    }),
    config.host,
    config.port,
    { memory, openPort: portOf(config.worker), tls: certificate?.tls },
  )
  if (config.worker !== undefined) leaveThePort = publicListener.drain
  opened.defer(async () => {
    log.info('stopping: waiting requests are refused, running requests finish')
    // Open live streams of consoles would keep the service from stopping.
    live.close()
    publicListener.drain()
    draining.begin()
    await publicListener.close(draining.leftMs())
  })
  const firstKey = accounts.workspaces().length === 0 ? await createFirstKey(accounts) : undefined
  const url = urlOf(publicListener)
  const adminUrl = urlOf(
    adminListener ?? { scheme: 'http', address: { host: config.adminHost, port: config.adminPort } },
  )
  publishService(dataDir, { url, adminUrl, socket: commands.socket, pid: process.pid })

  changes.subscribe('catalog', async () => {
    await catalog.reload()
    log.info({ models: catalog.models().length }, 'catalog reloaded')
    fetchMissing()
  })
  for (const file of watched) opened.defer(file.onChange(reloads.files))
  for (const file of tlsFiles) opened.defer(file.onChange(renewCertificate))
  if (certificate) log.info({ names: certificate.names, valid_until: certificate.validUntil }, 'serving HTTPS')
  fetchMissing()

  async function consoleLink(workspace: string): Promise<string> {
    return `${urlOf(publicListener)}/console#link=${(await sessions.issueLink(workspace)).secret}`
  }

  async function operatorConsoleLink(): Promise<string> {
    return `${adminUrl}/console#link=${(await operatorSessions.issueLink(OPERATOR)).secret}`
  }

  /** The certificate and the key change one after the other. Until they match, the old certificate stays in use. */
  function renewCertificate(): void {
    if (!config.tls) return
    try {
      const renewed = readCertificate(config.tls)
      publicListener.renew(renewed.tls)
      log.info({ names: renewed.names, valid_until: renewed.validUntil }, 'certificate renewed')
    } catch (error) {
      log.error({ reason: (error as Error).message }, 'the changed certificate cannot be used; the old one stays')
    }
  }

  function fetchMissing(): void {
    const missing = modelsToFetch(catalog.models(), config.file === undefined)
    local.pullMissing(missing, fetchEvents(telemetry, [downloads, fetching]))
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

function openFiles(config: Config, listenerUrl: () => string, clock: Clock, disk: DiskRoom): FileStore | undefined {
  const files = config.files()
  if (files?.kind === 's3') return s3Files(files, clock)
  const publicUrl = (): string => files?.publicUrl ?? listenerUrl()
  return files && localFiles({ ...files, dataDir: config.sharedDir, publicUrl }, clock, disk)
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
