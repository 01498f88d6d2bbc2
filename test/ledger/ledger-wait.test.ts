import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import type { Journal } from '../../src/ledger/journal/journal.ts'
import { journalLedger } from '../../src/ledger/journal-ledger.ts'
import { openLedger } from '../../src/ledger/open-ledger.ts'
import type { Projector } from '../../src/ledger/projector.ts'
import type { Intent } from '../../src/ledger/rows.ts'
import { projectSpans } from '../../src/ledger/projection.ts'
import { systemClock } from '../../src/shared/system-clock.ts'
import { simulatedDisk } from '../simulation/journal/disk.ts'
import { simulatedStore } from '../simulation/journal/store.ts'
import { sampleIntent, sampleRow } from '../support/ledger-samples.ts'
import { eventually, gate, type Gate } from '../support/waiting.ts'

/** A ledger whose database fails, or waits for the gate, as the test says. */
async function bench(waitFor: 'journal' | 'database') {
  const disk = simulatedDisk(new Map(), [], () => ({ error: undefined, part: 1 }), false)
  const state = { isFailing: false, gate: undefined as Gate | undefined }
  const empty = { rows: new Map(), aside: new Map(), position: undefined }
  const store = simulatedStore(empty, [], () => state.isFailing)
  const ledger = await openLedger({
    files: disk,
    store,
    clock: systemClock,
    maxJournalBytes: Infinity,
    waitFor,
    begin: async () => {},
    async apply(spans) {
      await state.gate?.opened
      await projectSpans({ files: disk, store, now: systemClock.now, setAside() {} }, spans)
    },
    events: {
      interrupted() {},
      damaged() {},
      refusedRowsAdded() {},
      stillRefused() {},
      setAside() {},
      storeFailed() {},
      storeRecovered() {},
    },
  })
  return { ledger, store, state }
}

describe('a ledger whose journal has reached its limit', () => {
  it('is not healthy and takes no new requests until the database has taken rows', () => {
    const state = { bytes: 11 }
    const noted: Intent[] = []
    const ledger = journalLedger(
      {
        status: () => ({ failure: undefined, waiting: 3, lagMs: 4 }),
        note: (intent: Intent) => void noted.push(intent),
      } as unknown as Journal,
      { status: () => ({ bytes: state.bytes, lagMs: 5, isFailing: true }) } as unknown as Projector,
      { maxJournalBytes: 10, waitFor: 'journal' },
    )
    assert.throws(() => ledger.note(sampleIntent('a')), /the journal is full/)
    const status = { healthy: false, waiting: 3, lagMs: 4, journalBytes: 11, journalLagMs: 5, isStoreFailing: true }
    assert.deepEqual(ledger.status(), status)
    state.bytes = 10
    ledger.note(sampleIntent('b'))
    assert.equal(noted.length, 1)
    assert.deepEqual(ledger.status(), { ...status, healthy: true, journalBytes: 10 })
  })
})

describe('the last byte of an answer', () => {
  it('waits for the journal, and not for the database', async () => {
    const { ledger, store, state } = await bench('journal')
    state.gate = gate()
    await ledger.settle(sampleRow('a'))
    assert.equal(store.state().rows.size, 0)
    state.gate.open()
    await ledger.close()
    assert.equal(store.state().rows.size, 1)
  })

  it('waits for the database if that is configured', async () => {
    const { ledger, store, state } = await bench('database')
    state.gate = gate()
    let isSettled = false
    const settled = ledger.settle(sampleRow('a')).then(() => (isSettled = true))
    await eventually('the journal has it', () => ledger.status().waiting === 0 && ledger.status().journalBytes > 0)
    assert.equal(isSettled, false)
    state.gate.open()
    await settled
    assert.equal(store.state().rows.size, 1)
    await ledger.close()
  })

  it('then waits through a failure of the database, while new requests are refused', async () => {
    const { ledger, store, state } = await bench('database')
    state.isFailing = true
    const settled = ledger.settle(sampleRow('a'))
    await eventually('it is not healthy', () => !ledger.status().healthy)
    assert.throws(() => ledger.note(sampleIntent('b')), /the database takes no rows/)
    state.isFailing = false
    await settled
    assert.equal(store.state().rows.size, 1)
    assert.equal(ledger.status().healthy, true)
    ledger.note(sampleIntent('b'))
    await ledger.settle(sampleRow('b'))
    await ledger.close()
  })

  it('is sent when the journal has the row, if the database fails for five seconds, and then asks no more', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const pass = async (ms: number): Promise<void> => {
      t.mock.timers.tick(ms)
      for (let turn = 0; turn < 5; turn++) await setImmediate()
    }
    let asked = 0
    const journal = { settle: async () => {}, end: () => ({ segment: 1, offset: 1 }) } as unknown as Journal
    const projector = { through: () => Promise.reject(new Error(`failure ${++asked}`)) } as unknown as Projector
    const ledger = journalLedger(journal, projector, { maxJournalBytes: Infinity, waitFor: 'database' })
    let isSettled = false
    const settled = ledger.settle(sampleRow('a')).then(() => (isSettled = true))
    await pass(0)
    for (let passedMs = 0; passedMs < 4900; passedMs += 100) await pass(100)
    await pass(99)
    assert.deepEqual([isSettled, asked], [false, 50], 'ten times a second')
    await pass(1)
    await settled
    const before = asked
    await pass(1000)
    await pass(1000)
    assert.equal(asked, before)
  })
})
