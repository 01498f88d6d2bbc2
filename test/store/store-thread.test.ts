import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { RefusedWrite } from '../../src/shared/refused-write.ts'
import type { Store } from '../../src/store/store.ts'
import { openStore } from '../../src/store/open.ts'
import { openSqlite } from '../../src/store/sqlite/client.ts'
import { isServiceRunning, takeServiceLock } from '../../src/store/sqlite/service-lock.ts'
import { sampleRow } from '../support/ledger-samples.ts'
import { openFiles } from '../support/open-files.ts'
import { eventually, within } from '../support/waiting.ts'

interface Bench {
  readonly store: Store
  readonly dataDir: string
  readonly events: string[]
  /** Ends the store's thread, whatever it is doing. */
  endThread(): Promise<void>
}

async function bench(t: TestContext): Promise<Bench> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-thread-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const dataDir = join(folder, 'data')
  const events: string[] = []
  const posted = t.mock.method(Worker.prototype, 'postMessage')
  const store = await openStore({
    dataDir,
    exclusive: true,
    events: {
      ended: () => events.push('ended'),
      replaced: () => events.push('replaced'),
      lost: (error) => events.push(`lost ${String((error as NodeJS.ErrnoException).code)}`),
    },
  })
  t.after(() => within(10_000, 'the store closes', store.close()))
  return {
    store,
    dataDir,
    events,
    async endThread() {
      // The thread that answers is the one that runs now.
      await store.workspaces()
      const worker = posted.mock.calls.at(-1)?.this as Worker
      await worker.terminate()
    },
  }
}

describe('a store thread that ends', () => {
  it('is replaced: what was written is there, and writing continues', async (t) => {
    const { store, events, endThread } = await bench(t)
    for (const id of ['a', 'b', 'c']) {
      await store.addRows([sampleRow(id)])
      await endThread()
      assert.equal(store.isUp(), false)
      await assert.rejects(store.workspaces(), /not running/)
      await eventually('it is back', () => store.isUp())
      assert.equal((await store.usageRow(id))?.requestId, id)
    }
    assert.deepEqual(events, ['ended', 'replaced', 'ended', 'replaced', 'ended', 'replaced'])
  })

  it('still keeps other services out after it is replaced', async (t) => {
    const { store, dataDir, endThread } = await bench(t)
    await endThread()
    await eventually('it is back', () => store.isUp())
    await assert.rejects(openStore({ dataDir, exclusive: true }), { code: 'ERR_DATA_DIR_TAKEN' })
  })

  it('rejects the transactions that it was given', async (t) => {
    const { store, endThread } = await bench(t)
    await store.addRows([sampleRow('a')])
    const ended = endThread()
    const pending = Array.from({ length: 50 }, (_, index) =>
      store.addRows([sampleRow(`row-${index}`)]).then(
        () => 'written',
        () => 'rejected',
      ),
    )
    await ended
    const outcomes = await within(5000, 'every transaction is answered', Promise.all(pending))
    await eventually('it is back', () => store.isUp())
    for (const [index, outcome] of outcomes.entries()) {
      // A rejected one may have been written. One that was reported as written must be there.
      if (outcome === 'written') assert.ok(await store.usageRow(`row-${index}`), `row-${index}`)
    }
  })

  it('keeps the directory locked meanwhile', async (t) => {
    const { store, dataDir, events, endThread } = await bench(t)
    await endThread()
    assert.throws(() => takeServiceLock(dataDir), /locked/)
    await assert.rejects(store.workspaces(), /not running/)
    await eventually('it is back', () => events.length === 2)
    assert.deepEqual(events, ['ended', 'replaced'])
    await store.close()
    takeServiceLock(dataDir).close()
  })

  it('is lost when the directory was moved away, rather than writing to an empty one', async (t) => {
    const { dataDir, events, endThread } = await bench(t)
    renameSync(dataDir, `${dataDir}-moved`)
    await endThread()
    await eventually('it gives up', () => events.length === 2)
    assert.deepEqual(events, ['ended', 'lost ERR_DATA_DIR_REPLACED'])
    assert.ok(!existsSync(dataDir), 'no empty directory in its place')
  })

  it('is replaced after a pause that doubles, unless the thread ran for a minute', async (t) => {
    const { store, endThread } = await bench(t)
    const { setTimeout: timeout } = globalThis
    let now = 0
    t.mock.method(performance, 'now', () => now)
    const timers = t.mock.method(globalThis, 'setTimeout', (work: () => void) => timeout(work, 0))
    const pauseAfter = async (livedMs: number): Promise<unknown> => {
      const before = timers.mock.callCount()
      now += livedMs
      await endThread()
      while (!store.isUp()) await setImmediate()
      return timers.mock.calls[before]?.arguments.at(1)
    }
    assert.deepEqual(
      [await pauseAfter(0), await pauseAfter(60_000), await pauseAfter(60_001), await pauseAfter(0)],
      [100, 200, 100, 200],
    )
    timers.mock.restore()
  })

  it('is given up after ten attempts, whose pauses are at most five seconds', async (t) => {
    const { dataDir, events, endThread } = await bench(t)
    const { setTimeout: timeout } = globalThis
    // A folder of that name cannot be opened, which may change.
    renameSync(join(dataDir, 'weir.db'), join(dataDir, 'away'))
    mkdirSync(join(dataDir, 'weir.db'))
    const timers = t.mock.method(globalThis, 'setTimeout', (work: () => void) => timeout(work, 0))
    await endThread()
    while (events.length < 2) await setImmediate()
    const pauses = timers.mock.calls.map((call) => call.arguments.at(1))
    timers.mock.restore()
    assert.deepEqual(pauses, [100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000, 5000])
    assert.deepEqual(events, ['ended', 'lost ERR_DATA_DIR_DISK'])
  })

  it('is lost when another directory has the place of its own, which it does not keep open', async (t) => {
    const { dataDir, events, endThread } = await bench(t)
    await (await openStore({ dataDir: `${dataDir}-other`, exclusive: false })).close()
    renameSync(dataDir, `${dataDir}-moved`)
    renameSync(`${dataDir}-other`, dataDir)
    await endThread()
    await eventually('it gives up', () => events.length === 2)
    assert.deepEqual(events, ['ended', 'lost ERR_DATA_DIR_REPLACED'])
    assert.equal(openFiles(`${dataDir}/`), 0)
  })

  it('keeps the directory locked until it has closed the database', async (t) => {
    const { store, dataDir } = await bench(t)
    const other = new DatabaseSync(join(dataDir, 'weir.db'))
    other.exec('BEGIN IMMEDIATE')
    const write = store.addRows([sampleRow('a')])
    const closed = store.close()
    await setImmediate()
    assert.equal(isServiceRunning(dataDir), true)
    other.exec('ROLLBACK')
    other.close()
    await Promise.all([write, closed])
    assert.equal(isServiceRunning(dataDir), false)
    assert.deepEqual(
      readdirSync(dataDir).filter((name) => name.startsWith('weir.db')),
      ['weir.db'],
      'everything is in the database, and nothing in a log beside it',
    )
    assert.equal(openFiles(`${dataDir}/weir.db`), 0)
  })

  it('refuses a value that cannot be sent to it, as one that cannot be stored', async (t) => {
    const dataDir = mkdtempSync(join(tmpdir(), 'weir-thread-'))
    t.after(() => rmSync(dataDir, { recursive: true, force: true }))
    const database = await openSqlite({ dataDir, exclusive: false })
    t.after(() => database.close())
    const statements = [{ sql: 'SELECT ?', runs: [[(() => {}) as never]], returns: 'rows' as const }]
    const refused = database.transact({ access: 'write', locks: [], statements })
    await assert.rejects(within(5000, 'it is refused', refused), RefusedWrite)
  })

  it('is not replaced when the store is being closed', async (t) => {
    const { store, events, endThread } = await bench(t)
    await endThread()
    await within(5000, 'it closes', store.close())
    assert.deepEqual(events, ['ended'])
    await assert.rejects(store.workspaces(), /closed/)
  })
})
