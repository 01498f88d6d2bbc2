import { randomUUID } from 'node:crypto'
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Whose journal is in a folder, for a database that has the journals of several replicas: it remembers for each owner how
 * far it has the journal. Every process that writes a journal is an owner of its own. So if somebody copies a data
 * directory and starts both, neither mistakes the other's place in its journal for its own.
 */
export interface JournalOwner {
  /** Who wrote what is in the folder now. */
  readonly earlier: string
  /** Who will write to it from `take` on. */
  readonly next: string
  /** Call when everything that the earlier owner left is in the database, and before anything else is written. */
  take(): void
}

const FILE = 'owner'

/** The folder has to exist. */
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

/** It is durable before it is used. */
function write(folder: string, owner: string): string {
  const unfinished = join(folder, `${FILE}.new`)
  writeFileSync(unfinished, `${owner}\n`, { mode: 0o600, flush: true })
  renameSync(unfinished, join(folder, FILE))
  const names = openSync(folder, 'r')
  try {
    fsyncSync(names)
  } finally {
    closeSync(names)
  }
  return owner
}
