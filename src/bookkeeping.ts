import type { Config } from './config.ts'
import { clockDoubt } from './ledger/clock-doubt.ts'
import { journalFiles } from './ledger/journal-files.ts'
import { journalOwner, type JournalOwner } from './ledger/journal-owner.ts'
import { openLedger } from './ledger/open-ledger.ts'
import { settledReads } from './ledger/settled-reads.ts'
import type { AlarmClock } from './ports/clock.ts'
import type { Ledger } from './ports/ledger.ts'
import type { Store } from './ports/store.ts'
import { projectorThread } from './projector/thread.ts'
import { ledgerEvents, storeEvents } from './service-log.ts'
import { journalFolder } from './settled-books.ts'
import { openStore } from './store/open.ts'
import type { Telemetry } from './telemetry/telemetry.ts'

/** The store, and the ledger with its journal in front of it. A part of compose.ts. */
export interface Bookkeeping {
  readonly store: Store
  /** For reports: they read through connections of their own, so that a long one never delays the ledger. */
  readonly books: Store
  readonly ledger: Ledger
  /** Whose journal this process writes, and whose it found here and delivered; undefined: nobody else writes to the store. */
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
    books: settledReads(reader, ledger),
    ledger,
    journal: owner && { owner: owner.next, predecessor: owner.earlier },
    readiness() {
      const { healthy, isStoreFailing } = ledger.status()
      const isOpen = store.isUp() && reader.isUp()
      // While PostgreSQL is away, the journal takes the rows. Another SQLite will not come.
      return { isReady: healthy && (databaseUrl !== undefined || isOpen), isDatabaseUp: isOpen && !isStoreFailing }
    },
    close: () => everything.disposeAsync(),
  }
}

/** The folder is made first, since the owner's name is in it. */
function ownerIn(folder: string): JournalOwner {
  journalFiles(folder)
  return journalOwner(folder)
}
