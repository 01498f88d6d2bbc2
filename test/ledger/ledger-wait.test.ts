import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openLedger } from '../../src/ledger/open-ledger.ts'
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

  it('is sent when the journal has the row, if the database fails for long', async () => {
    const { ledger, store, state } = await bench('database')
    state.isFailing = true
    await ledger.settle(sampleRow('a'))
    assert.equal(store.state().rows.size, 0)
    state.isFailing = false
    await ledger.close()
    assert.equal(store.state().rows.size, 1)
  })
})
