import assert from 'node:assert/strict'
import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { journalFiles } from '../../src/ledger/journal/journal-files-on-disk.ts'
import { openJournal } from '../../src/ledger/journal/journal.ts'
import { applyJournal } from '../../src/ledger/recovery.ts'
import { simulatedStore } from '../simulation/journal/store.ts'
import { systemClock } from '../../src/shared/system-clock.ts'
import { sampleIntent, sampleRow } from './ledger-samples.ts'
import { eventually } from './waiting.ts'

/**
 * node journal-program.ts FOLDER [full]: settles rows in a journal on a disk that runs out, and prints what callers were
 * told and what a start finds. With `full`, it fills the disk itself, and makes room once the journal has failed.
 */
export interface JournalReport {
  readonly told: readonly string[]
  readonly found: readonly string[]
  readonly failures: readonly string[]
  readonly segments: number
}

const ROWS = 150

if (import.meta.main) {
  // Otherwise a file that reaches the limit of its size ends the process.
  process.on('SIGXFSZ', () => {})
  const [folder = '', mode] = process.argv.slice(2)
  const files = journalFiles(join(folder, 'journal'))
  const failures = new Set<string>()
  const answered: string[] = []
  const journal = openJournal({ files, firstSegment: 1, clock: systemClock, grew() {} })
  const ballast = join(folder, 'ballast')
  for (let index = 0; index < ROWS; index++) {
    const id = `request-${index}-`
    if (mode === 'full' && index === ROWS / 2) fill(ballast)
    const settled = journal.settle(sampleRow(id))
    settled.then(() => answered.push(id)).catch(() => {})
    await Promise.race([settled, eventually('it fails', () => journal.status().failure !== undefined)])
    const { failure } = journal.status()
    if (!failure) continue
    failures.add((failure as NodeJS.ErrnoException).code ?? failure.message)
    assert.throws(() => journal.note(sampleIntent('refused')), failure)
    rmSync(ballast, { force: true })
    await settled
  }
  await journal.flush()
  journal.close()
  const store = simulatedStore({ rows: new Map(), aside: new Map(), position: undefined }, [], () => false)
  const { nextSegment } = await applyJournal({ files, store, now: systemClock.now, setAside() {} })
  const found = [...store.state().rows.keys()]
  const report: JournalReport = { told: answered, found, failures: [...failures], segments: nextSegment - 1 }
  process.stdout.write(JSON.stringify(report))
  process.exit(0)
}

/** Leaves no byte. */
function fill(path: string): void {
  const file = openSync(path, 'w')
  for (let size = 4096; size > 0;) {
    try {
      writeSync(file, Buffer.alloc(size))
    } catch {
      size = Math.floor(size / 2)
    }
  }
  closeSync(file)
}
