import { createHmac } from 'node:crypto'
import { openAccounts } from '../workspaces/accounts.ts'
import { keptOperatorToken } from '../workspaces/sessions/operator-token.ts'
import type { SignIn } from '../workspaces/sign-in/sign-in.ts'
import { openSessions } from '../workspaces/sessions/sessions.ts'
import { workspaceSessions } from '../workspaces/sessions/workspace-sessions.ts'
import { liveFeed } from '../queue/live-feed.ts'
import { openInvoicing, type Invoicing } from '../billing/invoices/invoices.ts'
import { openRowLinks } from '../billing/invoices/rows/row-links.ts'
import { openAlerts } from '../alerts/alerts.ts'
import { openBookkeeping } from '../bookkeeping.ts'
import { openCatalogInForce } from '../catalog/catalog-in-force.ts'
import { watchFile } from '../catalog/catalog.ts'
import { openLaneSettings } from '../catalog/lane-settings.ts'
import { openPriceBook } from '../billing/prices/price-book.ts'
import { CONFIG_FILE } from '../config.ts'
import { byteBudget, type ByteBudget } from '../shared/byte-budget.ts'
import { downloadList } from '../local-models/downloads.ts'
import { operatorModels } from '../local-models/operator-models.ts'
import { urlOf, type Listener } from '../server/server.ts'
import { remoteImages } from '../inference/request/remote-image.ts'
import { createPipeline, type Pipeline } from '../inference/pipeline/pipeline.ts'
import { coordinationEvents, refusalsFailed, spendEvents } from '../service-log.ts'
import { openSpendControl } from '../workspaces/spend-limits/spend-control.ts'
import { diskSpace } from '../operate/system-disk.ts'
import { openCoordination } from '../open-coordination.ts'
import { openDraining } from '../operate/draining.ts'
import { openEngines } from '../open-engines.ts'
import { openReloading } from '../operate/reload/reloading.ts'
import { openRefusals } from '../billing/refused-requests/refusal-recorder.ts'
import { version } from '../operate/version.ts'
import type { Tracing } from '../operate/telemetry/tracing.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Store } from '../store/store.ts'
import type { ChangeFeed } from '../cluster/changes/change-feed.ts'
import { openBatchRunner } from './open-batches.ts'
import { openFiles } from './open-files.ts'
import { openAlerting, openDownloadAlerts, openEmailing } from './open-notifications.ts'
import type { Start } from './start.ts'

/** Opens everything that the listeners serve from, one group after the other. A part of compose.ts. */

export const FIRST_WORKSPACE = 'default'

/** Everything that the listeners serve from. */
export type Parts = Awaited<ReturnType<typeof openParts>>

/** `lost` is called when requests can no longer be recorded. */
export async function openParts(start: Start, lost: (reason: Error) => void) {
  const { config, clock, opened, telemetry, settings } = start
  const records = await openRecords(start, lost)
  const shared = await openShared(start, records.ledger)
  const memory = byteBudget(config.maxRequestMemoryBytes)
  const access = await openAccess(start, records.store, shared.changes)
  const models = await openModels(start, { ...records, ...shared, ...access, memory })
  const images = opened.adopt(remoteImages(config.imageHosts, config.imageLimits), (it) => it.close())
  /** Set as soon as it listens. */
  const listeners: { public?: Listener } = {}
  const storage = openFiles(start, records.store, () => urlOf(listeners.public!))
  const tracing = await openTraces(start, { ...shared, ...models })
  await openMetrics(start, shared)
  const pipeline = openPipeline(start, { ...records, ...shared, ...models, tracing })
  const batchParts = { ...records, ...shared, ...access, ...models, memory, images, ...storage, pipeline }
  const batches = openBatchRunner(start, batchParts)
  const invoicing = openInvoices(start, records)
  const { seller, invoice } = config
  const rowLinks = openRowLinks(records.store, clock, { publicUrl: seller?.publicUrl, days: invoice.linkDays })
  await openEmailing(start, records.store, { invoicing, rowLinks })
  await openAlerting(start, { ...records, ...shared, ...access, ...models })
  const alerts = openAlerts(records.store, clock, config.alerts.endpoints)
  const reloads = openReloading({
    config,
    settings,
    catalog: models.catalog,
    changes: shared.changes,
    log: telemetry.log,
  })
  const downloads = downloadList(clock.monotonic)
  const downloadAlerts = openDownloadAlerts(start, records.store)
  const { local } = models.engines
  const localModels = operatorModels({
    local,
    downloads,
    catalog: models.catalog,
    load: shared.admission.ownStatus,
    diskSpace: () => diskSpace(config.modelsDir),
    directory: config.modelsDir,
  })
  const opening = {
    ...start,
    ...records,
    ...shared,
    ...access,
    ...models,
    listeners,
    memory,
    images,
    ...storage,
  }
  return {
    ...opening,
    alerts,
    tracing,
    pipeline,
    batches,
    invoicing,
    rowLinks,
    reloads,
    downloads,
    downloadAlerts,
    localModels,
  }
}

/** The store, the ledger, and the refused requests. */
async function openRecords({ config, clock, opened, telemetry }: Start, lost: (reason: Error) => void) {
  const bookkeeping = opened.adopt(await openBookkeeping(config, clock, telemetry, lost), (it) => it.close())
  const { store, readStore, ledger, journal, readiness } = bookkeeping
  const refusals = opened.adopt(
    openRefusals({ store, reader: readStore, clock, failed: refusalsFailed(telemetry) }),
    (it) => it.close(),
  )
  return { store, readStore, ledger, journal, recordReadiness: readiness, refusals }
}

/** What this replica has in common with others, and how it leaves them. */
async function openShared({ config, clock, opened, telemetry, settings }: Start, ledger: Ledger) {
  /** Other workers accept the connections of the shared port. Set when this one listens there. */
  const port = { leave: (): void => {} }
  const draining = openDraining({
    admission: () => shared.admission,
    clock,
    drainMs: () => settings.drainMs,
    begun: () => port.leave(),
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
  const { admission, rateLimiter, changes, coordination, link } = shared
  const live = opened.adopt(
    liveFeed(admission, clock, () => coordination.replicas()),
    (it) => it.close(),
  )
  return { admission, rateLimiter, changes, coordination, link, live, draining, port }
}

/** Workspaces and their keys, and who is signed in to a console. */
async function openAccess(start: Start, store: Store, changes: ChangeFeed) {
  const { config, clock } = start
  const accounts = await openAccounts(store, clock, changes)
  const sessions = workspaceSessions(accounts, openSessions(store, clock, changes))
  const operatorToken = config.operatorToken ?? keptOperatorToken(config.sharedDir)
  // Sessions are hashed with the operator token, so they are not found after it changes.
  const operatorSessions = openSessions(store, clock, changes, (secret) =>
    createHmac('sha256', operatorToken).update(secret).digest('hex'),
  )
  return { accounts, sessions, operatorToken, operatorSessions, signIn: await openSignIn(start) }
}

/** The module is loaded only where an identity provider is configured, because it takes memory. */
async function openSignIn({ config, clock, telemetry }: Start): Promise<SignIn | undefined> {
  if (!config.signIn) return undefined
  const { openIdentityProvider } = await import('../workspaces/sign-in/identity-provider.ts')
  return {
    settings: config.signIn,
    provider: openIdentityProvider(config.signIn, clock),
    failed: ({ message, cause }) =>
      telemetry.log.warn({ reason: message, cause: (cause as Error | undefined)?.message }, 'a sign-in failed'),
  }
}

type Records = Awaited<ReturnType<typeof openRecords>>
type Shared = Awaited<ReturnType<typeof openShared>>
type Access = Awaited<ReturnType<typeof openAccess>>
type Models = Awaited<ReturnType<typeof openModels>>

/** The catalog with its prices, limits and engines. */
async function openModels(start: Start, parts: Records & Shared & Access & { readonly memory: ByteBudget }) {
  const { config, clock, opened, telemetry } = start
  const { store, readStore, ledger, journal, admission, changes, coordination, link, accounts, memory } = parts
  const prices = await openPriceBook(store, clock, changes)
  const spending = opened.adopt(
    await openSpendControl({
      store: readStore,
      ledger,
      clock,
      accounts,
      link,
      journal,
      events: spendEvents(telemetry),
    }),
    (it) => it.close(),
  )
  const lanes = await openLaneSettings(store, changes)
  const engines = opened.adopt(openEngines(config, clock, telemetry, lanes), (it) => it.close())
  telemetry.measure({
    admission,
    coordination,
    ledger,
    memory,
    engineAddresses: engines.addresses,
    engineStates: engines.onDemand.list,
    readEngineLoads: engines.readLoads,
    engineKind: engines.kindOf,
    genAiNames: config.genAiNames,
    disk: () => diskSpace(config.dataDir),
    maxJournalBytes: config.maxJournalBytes,
  })
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
    processes: config.processes,
    changes,
    // The first start creates the workspace later than this.
    workspaceNames: () => [FIRST_WORKSPACE, ...accounts.workspaces().map(({ name }) => name)],
    log: telemetry.log,
  })
  return { prices, spending, lanes, engines, watched, catalogSource, catalog }
}

/** The module is loaded only where traces are wanted, because it takes memory. */
async function openTraces(
  { config, opened, telemetry }: Start,
  { engines, coordination }: Pick<Models, 'engines'> & Pick<Shared, 'coordination'>,
): Promise<Tracing | undefined> {
  if (!config.tracing) return undefined
  const { openTracing } = await import('../operate/telemetry/tracing.ts')
  const tracing = openTracing(config.tracing, {
    version,
    instance: coordination.replica,
    engineKind: engines.kindOf,
    failed: (reason) => telemetry.log.warn({ reason }, 'traces or metrics could not be sent'),
  })
  return opened.adopt(tracing, (it) => it.close())
}

/** Loaded only where a collector is configured, as traces are. */
async function openMetrics({ config, opened, telemetry }: Start, { coordination }: Shared): Promise<void> {
  if (!config.metricsExport) return
  const { openMetricsExport } = await import('../operate/telemetry/metrics-export.ts')
  const sending = openMetricsExport(config.metricsExport, {
    version,
    instance: coordination.replica,
    read: telemetry.metrics,
    failed: (reason) => telemetry.log.warn({ reason }, 'traces or metrics could not be sent'),
  })
  opened.adopt(sending, (it) => it.close())
}

function openPipeline(
  { clock, telemetry }: Start,
  parts: Records & Shared & Models & { readonly tracing: Tracing | undefined },
): Pipeline {
  const { admission, ledger, spending, engines, prices, live, tracing } = parts
  return createPipeline({
    admission,
    ledger,
    spending,
    clock,
    engineOf: engines.of,
    priceOf: prices.priceOn,
    admitted: live.admitted,
    settled: tracing ? (row) => telemetry.settled(row, tracing.settled(row)) : telemetry.settled,
    pastLimit: telemetry.pastLimit,
    contradicted: telemetry.contradicted,
    cacheUsed: telemetry.cacheUsed,
    random: Math.random,
  })
}

/** Documents are computed from the read store. Their writes use the ledger's connection, so that both are serialized. */
function openInvoices({ config, clock, telemetry }: Start, { store, readStore }: Records): Invoicing {
  const { issueInvoice, addCredit, correctRow, beginNote, continueNote, finishNote } = store
  const { addPayment, removePayment, queueEmail } = store
  const invoicing = openInvoicing(
    {
      ...readStore,
      issueInvoice,
      addCredit,
      correctRow,
      beginNote,
      continueNote,
      finishNote,
      addPayment,
      removePayment,
      queueEmail,
    },
    clock,
    config.seller,
    config.smtp !== undefined,
  )
  invoicing
    .finishCredit()
    .catch((error: Error) =>
      telemetry.log.warn(
        { reason: error.message },
        'an unfinished adjustment note or invoice is left for the next start',
      ),
    )
  return invoicing
}
