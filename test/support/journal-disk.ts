import fs, { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { scanFrames, recordsIn, type JournalRecord } from '../../src/ledger/journal/records.ts'
import type { RequestRow } from '../../src/ledger/rows.ts'
import { journalFolder } from '../../src/ledger/journal/journal-files-on-disk.ts'

/** What the journal of a data directory has on disk at this moment, in order. */
export function journalRecords(dataDir: string): readonly JournalRecord[] {
  const names = readdirSync(journalFolder(dataDir)).filter((name) => name.endsWith('.journal'))
  return names.sort().flatMap((name) => {
    return scanFrames(bytesOf(join(journalFolder(dataDir), name)), Number.parseInt(name, 10)).frames.flatMap(
      ({ text }) => recordsIn(text),
    )
  })
}

/** A segment that vanishes meanwhile is in the database. */
function bytesOf(file: string): Buffer {
  try {
    return readFileSync(file)
  } catch {
    return Buffer.alloc(0)
  }
}

export function journalRow(dataDir: string, requestId: string): RequestRow | undefined {
  const rows = journalRecords(dataDir).flatMap((record) => (record.kind === 'row' ? [record.row] : []))
  return rows.find((row) => row.requestId === requestId)
}

/** The disk under the journal of a service in this process. */
export interface JournalDisk {
  /** Every write fails from now on, as on a full disk. */
  fill(): void
  free(): void
  /** Writes that begin meanwhile take as long as `work`. */
  holdDuring<Result>(work: () => Promise<Result>): Promise<Result>
}

export function journalDisk(t: TestContext, dataDir: string): JournalDisk {
  let isFull = false
  let held: (() => void)[] | undefined
  const write = fs.write
  const inJournal = (handle: number): boolean =>
    readlinkSync(`/proc/self/fd/${handle}`).startsWith(journalFolder(dataDir))
  t.mock.method(fs, 'write', (handle: number, ...rest: unknown[]) => {
    const done = rest.at(-1) as (error: Error) => void
    if (isFull && inJournal(handle)) {
      setImmediate(done, Object.assign(new Error('no space left on the device'), { code: 'ENOSPC' }))
      return
    }
    const begin = (): void => (write as (handle: number, ...rest: unknown[]) => void)(handle, ...rest)
    if (held && inJournal(handle)) held.push(begin)
    else begin()
  })
  syncBuiltinESMExports()
  t.after(() => {
    t.mock.restoreAll()
    syncBuiltinESMExports()
  })
  return {
    fill: () => (isFull = true),
    free: () => (isFull = false),
    async holdDuring(work) {
      held = []
      try {
        return await work()
      } finally {
        const waiting = held
        held = undefined
        for (const begin of waiting) begin()
      }
    },
  }
}
