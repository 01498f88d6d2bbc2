import type { ChangeEvents } from './changes/redis.ts'
import type { LedgerEvents } from './ledger/open-ledger.ts'
import type { LinkEvents } from './redis/link.ts'
import type { DatabaseEvents } from './store/open.ts'
import type { Telemetry } from './telemetry/telemetry.ts'

/** What the log says when something happens to the store, the ledger or the link to other replicas. */

export function storeEvents({ log }: Telemetry, lost: (reason: Error) => void): DatabaseEvents {
  return {
    ended: ({ message }) => log.error({ reason: message }, 'the store thread ended; starting another one'),
    replaced: () => log.warn('the store is running again'),
    lost,
  }
}

export function coordinationEvents({ log }: Telemetry): LinkEvents & ChangeEvents {
  return {
    joined: (epoch, replicas) => log.info({ epoch, replicas }, 'joined the other replicas through Redis'),
    lost: (reason) => log.warn({ reason }, 'Redis is away; serving within the share of this replica'),
    unreached: (change, replicas) =>
      log.warn(
        { change, replicas },
        'replicas did not answer that they took a change in; they will as soon as they can',
      ),
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
      // A segment is missing, so the rows in it are lost, and so would be those that follow.
      if ((reason as NodeJS.ErrnoException).code === 'ENOENT') return lost(reason)
      log.error({ reason: reason.message }, 'the database takes no rows; the journal keeps them until it does')
    },
    storeRecovered: () => log.warn('the database takes rows again'),
  }
}
