import { randomUUID } from 'node:crypto'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { flushFolderSync } from '../../shared/flush-folder.ts'

/**
 * The owner of the journal in a folder. A database that receives the journals of several replicas remembers for each
 * owner how far it has applied the journal. Every process that writes a journal is a separate owner. So if a data
 * directory is copied and both copies are started, neither takes the other's position in the journal for its own.
 */
export interface JournalOwner {
  /** The owner of what is in the folder now. */
  readonly earlier: string
  /** The owner of what will be written after `take`. */
  readonly next: string
  /** Call when everything of the earlier owner is in the database, and before anything else is written. */
  take(): void
}

const FILE = 'owner'

/** The folder must exist. */
export function journalOwner(folder: string): JournalOwner {
  const next = randomUUID()
  return { earlier: ownerIn(folder) ?? write(folder, randomUUID()), next, take: () => void write(folder, next) }
}

function ownerIn(folder: string): string | undefined {
  try {
    return readFileSync(join(folder, FILE), 'utf8').trim() || undefined
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Makes the name durable before it is used. */
function write(folder: string, owner: string): string {
  const unfinished = join(folder, `${FILE}.new`)
  writeFileSync(unfinished, `${owner}\n`, { mode: 0o600, flush: true })
  renameSync(unfinished, join(folder, FILE))
  flushFolderSync(folder)
  return owner
}
