import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openLedger, type LedgerEvents } from '../../src/ledger/open-ledger.ts'
import { simulatedDisk } from '../simulation/journal/disk.ts'
import type { History } from '../simulation/journal/history.ts'
import { simulatedStore } from '../simulation/journal/store.ts'
import { sampleIntent, sampleRow } from '../support/ledger-samples.ts'

describe('a ledger that is opened', () => {
  it('settles what earlier runs left, then takes over, then writes; and reports what it found', async () => {
    const history: History = []
    const order: string[] = []
    const disk = simulatedDisk(new Map(), history, () => ({ error: undefined, part: 1 }), false)
    const aside = new Map([['b', sampleRow('b')]])
    const store = simulatedStore({ rows: new Map(), aside, position: undefined }, history, () => false)
    const events: LedgerEvents = {
      interrupted: (count) => order.push(`interrupted ${count}`),
      damaged: () => order.push('damaged'),
      refusedRowsAdded: (count) => order.push(`added ${count}`),
      stillRefused: (count) => order.push(`still refused ${count}`),
      setAside() {},
      storeFailed() {},
      storeRecovered() {},
    }
    await openLedger({
      files: {
        ...disk,
        create: (segment) => {
          order.push(`segment ${segment}`)
          return disk.create(segment)
        },
      },
      store: {
        ...store,
        earlierIntents: async () => [sampleIntent('a')],
        forgetEarlierIntents: async () => void order.push('forgotten'),
      },
      clock: { now: () => 5, monotonic: () => 5 },
      maxJournalBytes: Infinity,
      waitFor: 'journal',
      apply: async () => {},
      async begin() {
        await new Promise((resolve) => setImmediate(resolve))
        order.push('begun')
      },
      events,
    })
    assert.deepEqual(order, ['added 1', 'forgotten', 'interrupted 1', 'begun', 'segment 1'])
    assert.deepEqual(store.state().rows.get('a')?.outcome, 'interrupted')
  })

  it('counts rows that are still refused', async () => {
    const history: History = []
    const told: string[] = []
    const disk = simulatedDisk(new Map(), history, () => ({ error: undefined, part: 1 }), false)
    // The simulated store refuses ids that end with 3.
    const aside = new Map([['x3', sampleRow('x3')]])
    const store = simulatedStore({ rows: new Map(), aside, position: undefined }, history, () => false)
    await openLedger({
      files: disk,
      store,
      clock: { now: () => 5, monotonic: () => 5 },
      maxJournalBytes: Infinity,
      waitFor: 'journal',
      apply: async () => {},
      begin: async () => {},
      events: {
        interrupted: () => told.push('interrupted'),
        damaged: () => told.push('damaged'),
        refusedRowsAdded: () => told.push('added'),
        stillRefused: (count) => told.push(`still refused ${count}`),
        setAside() {},
        storeFailed() {},
        storeRecovered() {},
      },
    })
    assert.deepEqual(told, ['still refused 1'])
  })
})
