import { closeSync, fstatSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { FILES_FOLDER, PLACE_FILE } from '../../batches/file-store.ts'
import { appendPart, type DescribedFile } from './backup-file.ts'
import { openIfThere } from './journal-copy.ts'

/** The files of batches that a database lists. */
export interface ListedFiles {
  /** Those in the data directory, and the one that names it as a storage. */
  readonly here: readonly string[]
  /** How many are in another storage. */
  readonly elsewhere: number
}

export function listedFiles(database: DatabaseSync, dataDir: string): ListedFiles {
  const hasFiles = database.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'stored_files'").get()
  if (!hasFiles) return { here: [], elsewhere: 0 }
  const rows = database.prepare('SELECT id, place FROM stored_files WHERE is_stored = 1 ORDER BY id').all()
  const place = placeOf(dataDir)
  const here = rows.filter((row) => row['place'] === place).map(({ id }) => String(id))
  return { here: place === undefined ? [] : [PLACE_FILE, ...here], elsewhere: rows.length - here.length }
}

function placeOf(dataDir: string): string | undefined {
  try {
    return readFileSync(join(dataDir, FILES_FOLDER, PLACE_FILE), 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Appends the files to a backup, one open at a time. Leaves out those that were deleted since the database was copied. */
export function appendBatchFiles(
  { here }: ListedFiles,
  dataDir: string,
  into: number,
  position: number,
  written: () => void,
): readonly DescribedFile[] {
  let end = position
  return here.flatMap((name) => {
    const handle = openIfThere(join(dataDir, FILES_FOLDER, name))
    if (handle === undefined) return []
    try {
      const part = appendPart({ handle, bytes: fstatSync(handle).size }, into, end, written)
      end += part.bytes
      return [{ name, ...part }]
    } finally {
      closeSync(handle)
    }
  })
}
