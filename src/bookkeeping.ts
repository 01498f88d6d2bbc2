import type { Config } from './config.ts'
import { clockDoubt } from './ledger/clock-doubt.ts'
import { journalFiles, journalFolder } from './ledger/journal/journal-files-on-disk.ts'
import { journalOwner, type JournalOwner } from './ledger/journal/journal-owner.ts'
import { openLedger } from './ledger/open-ledger.ts'
import { settledReads } from './billing/settled-reads.ts'
import type { AlarmClock } from './shared/clock.ts'
import type { Ledger } from './ledger/ledger.ts'
import type { Store } from './store/store.ts'
import { projectorThread } from './ledger/projector-thread/thread.ts'
import { ledgerEvents, storeEvents } from './service-log.ts'
import { openStore } from './store/open.ts'
import type { Telemetry } from './operate/telemetry/telemetry.ts'

/** The store, and the ledger with its journal in front of it. A part of compose.ts. */
export interface Bookkeeping {
  readonly store: Store
  /** For reports, with its own connections, so that a long report never delays the ledger. */
  readonly readStore: Store
  readonly ledger: Ledger
  /**
   * The owner of the journal that this process writes, and the owner of the journal that it found and delivered; undefined: no
   * other process writes to the store.
   */
  readonly journal: { readonly owner: string; readonly predecessor: string } | undefined
  /** `isReady`: whether requests can be recorded. */
  readiness(): { readonly isReady: boolean; readonly isDatabaseUp: boolean }
  close(): Promise<void>
}

export async function openBookkeeping(
  config: Pick<Config, 'dataDir' | 'databaseUrl' | 'maxJournalBytes' | 'waitFor'>,
  clock: AlarmClock,
  telemetry: Telemetry,
  lost: (reason: Error) => void,
): Promise<Bookkeeping> {
  // If the start fails, this closes what was opened so far.
  await using opened = new AsyncDisposableStack()
  const { dataDir, databaseUrl } = config
  const folder = journalFolder(dataDir)
  const owner = databaseUrl === undefined ? undefined : ownerIn(folder)
  const events = storeEvents(telemetry, lost)
  const choice = { dataDir, databaseUrl, owner: owner?.earlier, events }
  const store = opened.adopt(await openStore({ ...choice, exclusive: true }), (it) => it.close())
  const reader = opened.adopt(await openStore({ ...choice, exclusive: false }), (it) => it.close())
  const doubt = clockDoubt(clock.now(), await store.lastSettledAt())
  if (doubt) telemetry.log.warn({ now: new Date(clock.now()).toISOString() }, doubt)
  const recording = ledgerEvents(telemetry, lost)
  const projecting = { dataDir, databaseUrl, owner: owner?.next, journalFolder: folder }
  const thread = opened.adopt(projectorThread(projecting, recording), (it) => it.close())
  const ledger = opened.adopt(
    await openLedger({
      files: journalFiles(folder),
      store,
      clock,
      maxJournalBytes: config.maxJournalBytes,
      waitFor: config.waitFor,
      apply: thread.apply,
      async begin() {
        if (!owner) return
        owner.take()
        await store.forgetJournal()
      },
      events: recording,
    }),
    (it) => it.close(),
  )
  const everything = opened.move()
  return {
    store,
    readStore: settledReads(reader, ledger),
    ledger,
    journal: owner && { owner: owner.next, predecessor: owner.earlier },
    readiness() {
      const { healthy, isStoreFailing } = ledger.status()
      const isOpen = store.isUp() && reader.isUp()
      // While PostgreSQL is unreachable, the journal takes the rows. A lost SQLite database does not come back.
      return { isReady: healthy && (databaseUrl !== undefined || isOpen), isDatabaseUp: isOpen && !isStoreFailing }
    },
    close: () => everything.disposeAsync(),
  }
}

/** Creates the folder first, because the owner's name is stored in it. */
function ownerIn(folder: string): JournalOwner {
  journalFiles(folder)
  return journalOwner(folder)
}
