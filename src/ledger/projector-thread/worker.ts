import { parentPort, workerData } from 'node:worker_threads'
import type { JournalSpan } from '../journal/positions.ts'
import { journalFiles } from '../journal/journal-files-on-disk.ts'
import { projectSpans } from '../projection.ts'
import { openLedgerDatabaseHere, requireLedger, type DatabaseChoice } from '../../store/database-choice.ts'
import { ledgerQueries } from '../queries/ledger.ts'
import { systemClock } from '../../shared/system-clock.ts'

/** The projector's thread: reads the journal, and adds its rows to the store. */
export interface ProjectorOptions extends DatabaseChoice {
  readonly journalFolder: string
  /** The owner of the journal; undefined: the data directory. */
  readonly owner: string | undefined
}

export interface ProjectorRequest {
  readonly spans: readonly JournalSpan[]
}

export type ProjectorReply =
  | { readonly kind: 'applied' }
  | { readonly kind: 'failed'; readonly reason: string; readonly code: string | undefined }
  | { readonly kind: 'set_aside'; readonly requestId: string; readonly workspaceId: string; readonly reason: string }

const { journalFolder, ...options } = workerData as ProjectorOptions
requireLedger(options)
// Not the whole store: a thread that loads less starts sooner and takes less memory.
const { database, owner } = await openLedgerDatabaseHere({ ...options, exclusive: false })
const files = journalFiles(journalFolder)
const reply = (message: ProjectorReply): void => parentPort?.postMessage(message)
const projection = {
  files,
  store: ledgerQueries(database, owner),
  now: systemClock.now,
  setAside: ({ requestId, workspaceId }: { requestId: string; workspaceId: string }, reason: string) =>
    reply({ kind: 'set_aside', requestId, workspaceId, reason }),
}

parentPort?.on('message', (request: ProjectorRequest | 'close') => {
  if (request === 'close') {
    void database.close()
    parentPort?.close()
    return
  }
  projectSpans(projection, request.spans).then(
    () => reply({ kind: 'applied' }),
    ({ message, code }: NodeJS.ErrnoException) => reply({ kind: 'failed', reason: message, code }),
  )
})
