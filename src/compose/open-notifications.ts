import { openDelivering } from '../alerts/delivering.ts'
import { alertEvent } from '../alerts/events.ts'
import { openWatch } from '../alerts/watch.ts'
import type { Invoicing } from '../billing/invoices/invoices.ts'
import type { RowLinks } from '../billing/invoices/rows/row-links.ts'
import { openSender } from '../delivery/sender.ts'
import { RUNTIME_NAME } from '../local-models/files/runtime-files.ts'
import type { FetchEvents } from '../local-models/local-models.ts'
import { alertEvents, alertsFailed, emailEvents } from '../service-log.ts'
import type { Bookkeeping } from '../bookkeeping.ts'
import { isFirstWorker } from '../config.ts'
import type { CoordinationParts } from '../open-coordination.ts'
import type { Engines } from '../open-engines.ts'
import type { Accounts } from '../workspaces/accounts.ts'
import type { SpendControl } from '../workspaces/spend-limits/spend-control.ts'
import type { Store } from '../store/store.ts'
import { engineStates, expiringKeys, keySpend, laneDepths, newlyOverdue, workspaceSpend } from './alert-sources.ts'
import type { Start } from './start.ts'

/** Opens what sends e-mails and webhooks. A part of compose.ts. */

/** The module is loaded only where SMTP is configured, because it takes memory. Among workers, the first one sends. */
export async function openEmailing(
  { config, clock, opened, telemetry }: Start,
  store: Store,
  parts: { readonly invoicing: Invoicing; readonly rowLinks: RowLinks },
): Promise<void> {
  if (!config.smtp || !isFirstWorker(config)) return
  const { emailSchedule, isFinalRefusal } = await import('../delivery/smtp-transport.ts')
  const { smtpDelivery } = await import('../billing/invoices/emails/smtp.ts')
  const deliver = smtpDelivery(config.smtp, { ...parts, fonts: config.invoice.fonts })
  const sender = openSender({
    outbox: { claim: store.claimEmail, finish: store.finishEmail },
    clock,
    deliver,
    isFinal: isFinalRefusal,
    schedule: emailSchedule,
    events: emailEvents(telemetry),
  })
  opened.adopt(sender, (it) => it.close())
}

interface AlertingParts
  extends Pick<Bookkeeping, 'store' | 'readStore'>, Pick<CoordinationParts, 'admission' | 'coordination'> {
  readonly accounts: Accounts
  readonly spending: SpendControl
  readonly engines: Engines
}

/** Among workers, the first one notices events and sends them. */
export async function openAlerting(start: Start, parts: AlertingParts): Promise<void> {
  const { config, clock, opened, telemetry } = start
  if (!isFirstWorker(config)) return
  const { store, readStore, accounts, spending, engines, admission, coordination } = parts
  const settings = config.alerts
  const delivering = await openDelivering({
    store,
    settings,
    smtp: config.smtp,
    clock,
    events: (endpoint) => alertEvents(telemetry, endpoint),
  })
  opened.adopt(delivering, (it) => it.close())
  const watch = openWatch({
    store,
    owner: coordination.replica,
    clock,
    endpoints: settings.endpoints.map(({ name }) => name),
    spendThresholds: settings.spendThresholds,
    workspaceSpend: () => workspaceSpend({ accounts, spending, clock }),
    keySpend: () => keySpend(readStore, clock),
    engines: () => engineStates(engines),
    lanes: () => laneDepths(admission),
    overdueInvoices: () => newlyOverdue(readStore, clock.now()),
    expiringKeys: (before, after) => expiringKeys(store, { now: clock.now(), before, after }),
    waited: telemetry.alertsWaited,
    failed: alertsFailed(telemetry),
  })
  opened.adopt(watch, (it) => it.close())
}

/** Among workers, the first one adds the event of a finished download. */
export function openDownloadAlerts({ config, clock, telemetry }: Start, store: Store): Partial<FetchEvents> {
  if (!isFirstWorker(config)) return {}
  return {
    ready(model) {
      if (model === RUNTIME_NAME) return
      const at = clock.now()
      const event = alertEvent('download.finished', { unique: [model, at], at, data: { model } })
      store.addEvents([event]).catch(alertsFailed(telemetry))
    },
  }
}
