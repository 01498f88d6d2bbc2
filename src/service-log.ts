import type { ChangeEvents } from './cluster/changes/redis/changes.ts'
import { bytesText } from './shared/bytes-text.ts'
import { formatAud } from './shared/money/money.ts'
import type { ClaimedDelivery } from './alerts/alert-store.ts'
import type { ClaimedEmail } from './billing/invoices/emails/email-store.ts'
import type { SenderEvents } from './delivery/sender.ts'
import type { Draining } from './operate/draining.ts'
import { RUNTIME_NAME } from './local-models/files/runtime-files.ts'
import type { FetchEvents } from './local-models/local-models.ts'
import type { FailureCounts } from './engines/failure-counts.ts'
import { healthLog } from './engines/health-log.ts'
import type { OnDemandEvents } from './engines/on-demand/on-demand.ts'
import type { UpstreamEvents } from './engines/upstream.ts'
import type { LedgerEvents } from './ledger/open-ledger.ts'
import type { SpendEvents } from './workspaces/spend-limits/spending.ts'
import type { LinkEvents } from './cluster/redis/link.ts'
import type { DatabaseEvents } from './store/database.ts'
import type { Telemetry } from './operate/telemetry/telemetry.ts'

/** Log messages for events of the store, the ledger, other replicas, engines and downloads. */

export function storeEvents({ log }: Telemetry, lost: (reason: Error) => void): DatabaseEvents {
  return {
    ended: ({ message }) => log.error({ reason: message }, 'the store has ended or does not answer; trying again'),
    replaced: () => log.warn('the store is running again'),
    lost,
  }
}

export function refusalsFailed({ log }: Telemetry): (reason: Error) => void {
  return ({ message }) =>
    log.warn({ reason: message }, 'refused requests cannot be stored now; they are counted in memory')
}

export function emailEvents({ log }: Telemetry): SenderEvents<ClaimedEmail> {
  return {
    sent: ({ number }) => log.info({ number }, 'invoice sent by e-mail'),
    notSent: ({ number, attempts }, reason, state) =>
      log.warn(
        { number, attempts, reason },
        state === 'failed'
          ? 'invoice could not be sent by e-mail'
          : 'invoice could not be sent by e-mail; trying again',
      ),
    failed: ({ message }) => log.warn({ reason: message }, 'e-mails cannot be read or marked now; trying again'),
  }
}

export function alertEvents(telemetry: Telemetry, endpoint: string): SenderEvents<ClaimedDelivery> {
  const { log, alertSent } = telemetry
  return {
    sent: () => alertSent(endpoint, 'sent'),
    notSent({ id, eventId, attempts }, reason, state) {
      alertSent(endpoint, state === 'failed' ? 'failed' : 'retried')
      log.warn(
        { endpoint, delivery: id, event: eventId, attempts, reason },
        state === 'failed' ? 'an event could not be delivered' : 'an event could not be delivered; trying again',
      )
    },
    failed: alertsFailed(telemetry),
  }
}

export function alertsFailed({ log }: Telemetry): (reason: Error) => void {
  return ({ message }) => log.warn({ reason: message }, 'events cannot be read or written now; trying again')
}

export function batchesFailed({ log }: Telemetry): (reason: Error) => void {
  return ({ message }) =>
    log.warn({ reason: message }, 'a batch or a file of one cannot be processed now; trying again')
}

export function coordinationEvents({ log }: Telemetry, draining: Draining): LinkEvents & ChangeEvents {
  return {
    drainRequested() {
      if (!draining.isOn()) log.info('asked to drain: running requests finish, then this replica leaves')
      draining.begin()
    },
    joined: (epoch, replicas) => log.info({ epoch, replicas }, 'joined the other replicas through Redis'),
    lost: (reason) => log.warn({ reason }, 'Redis does not answer; serving within the allotment of this replica'),
    unreached: (change, replicas) =>
      log.warn(
        { change, replicas },
        'replicas did not answer that they took a change in; they will as soon as they can',
      ),
  }
}

export function upstreamEvents({ log }: Telemetry, failures: FailureCounts): UpstreamEvents {
  return {
    healthChanged: healthLog((url, isUp) => log.warn({ url }, isUp ? 'engine is up again' : 'engine is down')),
    callFailed(url, reason) {
      failures.add(url, reason)
      log.warn({ url, reason }, 'engine call failed')
    },
  }
}

export function onDemandEvents({ log, engineStarted, engineFailed }: Telemetry): OnDemandEvents {
  return {
    started(lane, ms) {
      engineStarted(lane, ms)
      log.info({ lane, seconds: Math.round(ms / 100) / 10 }, 'engine is ready')
    },
    failed(lane, reason, lastLines) {
      engineFailed(lane)
      log.warn({ lane, reason, last_lines: lastLines }, 'engine failed')
    },
    stopped: (lane) => log.info({ lane }, 'engine is stopped'),
    lingers: (lane) =>
      log.error(
        { lane },
        'engine was killed but has not ended: its memory and its port stay reserved until it does, and it cannot start again before',
      ),
    tookTooMuch(lane, { bytes, measuredBytes }) {
      const sizes = { kept: bytesText(bytes), measured: bytesText(measuredBytes ?? 0) }
      log.warn(
        { lane, ...sizes },
        'engine takes more of its device than is kept for it; raise run.memory in the catalog',
      )
    },
    leftoversEnded: (names) =>
      log.warn({ engines: names }, 'ended engines that an earlier run of the service had left'),
  }
}

/** Passes every event on to `others`. */
export function fetchEvents({ log }: Telemetry, others: readonly Partial<FetchEvents>[]): FetchEvents {
  return {
    progress: (progress) => others.forEach((it) => it.progress?.(progress)),
    ready(slug) {
      if (slug === RUNTIME_NAME) log.info(`the ${slug} is ready`)
      else log.info({ model: slug }, 'model is ready')
      others.forEach((it) => it.ready?.(slug))
    },
    failed(slug, reason) {
      if (slug === RUNTIME_NAME) log.warn({ reason }, `the ${slug} could not be fetched; trying again in 30 s`)
      else log.warn({ model: slug, reason }, 'model download failed; trying again in 30 s')
      others.forEach((it) => it.failed?.(slug, reason))
    },
    stopped: (slug) => others.forEach((it) => it.stopped?.(slug)),
  }
}

export function spendEvents({ log, spendLimitReached }: Telemetry): SpendEvents {
  return {
    limitReached({ name, spendLimit }, spent) {
      spendLimitReached(name)
      const limit = formatAud(spendLimit?.amount ?? 0n)
      log.warn({ workspace: name, limit, spent: formatAud(spent), soft: spendLimit?.isSoft }, 'spend limit reached')
    },
  }
}

export function ledgerEvents({ log, rowsSetAside }: Telemetry, lost: (reason: Error) => void): LedgerEvents {
  return {
    interrupted: (requests) =>
      log.warn({ requests }, 'settled requests that an earlier run left unfinished, at no charge'),
    damaged: (segments) =>
      log.error({ segments }, 'the disk lost a part of the journal, and the rows in it: see the .damaged files'),
    refusedRowsAdded: (rows) => log.warn({ rows }, 'added ledger rows that the database had refused before'),
    stillRefused(rows) {
      rowsSetAside(rows)
      log.error({ rows }, 'the database still refuses ledger rows; they are not billed: see weir reconcile')
    },
    setAside({ requestId, workspaceId }, reason) {
      rowsSetAside(1)
      const line = { request_id: requestId, workspace_id: workspaceId, reason }
      log.error(line, 'the database refused a ledger row; it is set aside and not billed: see weir reconcile')
    },
    storeFailed(reason) {
      const { code } = reason as NodeJS.ErrnoException
      // A segment or the database is missing, so its rows are lost, and later rows would be lost, too.
      if (code === 'ENOENT' || code === 'ERR_DATA_DIR_REPLACED') return lost(reason)
      log.error({ reason: reason.message }, 'the database takes no rows; the journal keeps them until it does')
    },
    storeRecovered: () => log.warn('the database takes rows again'),
  }
}
