import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { frameOf, headText, rowText } from '../../src/ledger/journal/records.ts'
import type { JournalSpan } from '../../src/ledger/journal/positions.ts'
import type { RequestRow } from '../../src/ledger/rows.ts'
import { journalFiles } from '../../src/ledger/journal/journal-files-on-disk.ts'
import type { Store } from '../../src/store/store.ts'
import { projectorThread, type ProjectorThread } from '../../src/ledger/projector-thread/thread.ts'
import { openStore } from '../../src/store/open.ts'
import { sampleRow } from '../support/ledger-samples.ts'
import { within } from '../support/waiting.ts'

interface Stage {
  readonly thread: ProjectorThread
  readonly store: Store
  readonly dataDir: string
  readonly journalFolder: string
  readonly aside: string[]
  /** Writes a segment with these rows. */
  segment(number: number, rows: readonly RequestRow[]): Promise<JournalSpan>
  ids(): Promise<readonly string[]>
}

async function stage(t: TestContext): Promise<Stage> {
  const dataDir = mkdtempSync(join(tmpdir(), 'weir-projector-'))
  const journalFolder = join(dataDir, 'journal')
  const store = await openStore({ dataDir, exclusive: true })
  const files = journalFiles(journalFolder)
  const aside: string[] = []
  const options = { dataDir, journalFolder, owner: undefined }
  const started = projectorThread(options, {
    setAside: ({ requestId, workspaceId }, reason) => aside.push(`${requestId} ${workspaceId} ${reason}`),
  })
  const thread: ProjectorThread = {
    apply: (spans) => within(20_000, 'the spans are applied', started.apply(spans)),
    close: () => within(20_000, 'the thread has ended', started.close()),
  }
  t.after(async () => {
    await thread.close()
    await store.close()
    rmSync(dataDir, { recursive: true, force: true })
  })
  return {
    thread,
    store,
    dataDir,
    journalFolder,
    aside,
    async segment(number, rows) {
      const text = [headText({ format: 1, previous: null }), ...rows.map(rowText)].join('\n')
      const frame = frameOf(text, number, 0)
      const writer = await files.create(number)
      await new Promise<void>((resolve) => writer.write(frame, 0, false, () => resolve()))
      writer.close()
      return { segment: number, from: 0, to: frame.length }
    },
    async ids() {
      const found = await store.usage({ workspaceId: 'ws_1', from: 0, to: 1e13, limit: 100 })
      return found.map(({ requestId }) => requestId).toSorted()
    },
  }
}

const threads = (): number => readdirSync('/proc/self/task').length

describe('the thread of the projector', () => {
  it('adds the rows of spans to the store, and stores the checkpoint', async (t) => {
    const { thread, store, segment, ids } = await stage(t)
    const spans = [await segment(1, [sampleRow('a'), sampleRow('b')]), await segment(2, [sampleRow('c')])]
    await thread.apply(spans)
    assert.deepEqual(await ids(), ['a', 'b', 'c'])
    assert.deepEqual(await store.journalPosition(), { segment: 2, offset: spans[1]!.to })
    const before = threads()
    await thread.apply([await segment(3, [sampleRow('d')])])
    assert.deepEqual(await ids(), ['a', 'b', 'c', 'd'])
    assert.equal(threads(), before, 'it is one thread')
  })

  it('reports the rows that the store refuses permanently, and adds the others', async (t) => {
    const { thread, segment, ids, aside } = await stage(t)
    await thread.apply([await segment(1, [sampleRow('a'), sampleRow('none', { startedAt: Number.NaN })])])
    assert.deepEqual(await ids(), ['a'])
    assert.equal(aside.length, 1)
    assert.match(aside[0]!, /^none ws_1 ./)
  })

  it('rejects what it cannot read, with the cause, and continues with the next', async (t) => {
    const { thread, segment, ids } = await stage(t)
    await assert.rejects(thread.apply([{ segment: 9, from: 0, to: 10 }]), { code: 'ENOENT' })
    const span = await segment(1, [sampleRow('a')])
    await assert.rejects(thread.apply([{ ...span, to: span.to + 1 }]), /segment 1 .* between 0 and \d+: check the disk/)
    await thread.apply([span])
    assert.deepEqual(await ids(), ['a'])
  })

  it('does not start in an empty directory in place of one that was moved away', async (t) => {
    const { thread, dataDir, segment } = await stage(t)
    const span = await segment(1, [sampleRow('a')])
    renameSync(dataDir, `${dataDir}-moved`)
    t.after(() => rmSync(`${dataDir}-moved`, { recursive: true }))
    await assert.rejects(thread.apply([span]), { code: 'ERR_DATA_DIR_REPLACED' })
    assert.ok(!existsSync(dataDir))
  })

  it('is replaced when it has ended, and rejects the work in progress', async (t) => {
    const { thread, segment, ids, journalFolder } = await stage(t)
    const span = await segment(1, [sampleRow('a')])
    // It cannot even start: its folder is a file.
    renameSync(journalFolder, `${journalFolder}.away`)
    writeFileSync(journalFolder, '')
    await assert.rejects(thread.apply([span]), { code: 'EEXIST' })
    rmSync(journalFolder)
    renameSync(`${journalFolder}.away`, journalFolder)
    await thread.apply([span])
    assert.deepEqual(await ids(), ['a'])
    const before = threads()
    await thread.close()
    assert.equal(threads(), before - 1, 'it is over when close resolves')
    await thread.close()
    await thread.apply([await segment(2, [sampleRow('b')])])
    assert.deepEqual(await ids(), ['a', 'b'])
  })
})
