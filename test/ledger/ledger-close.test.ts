import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openLedger } from '../../src/ledger/open-ledger.ts'
import { projectSpans } from '../../src/ledger/projection.ts'
import { simulatedDisk, type SimulatedDisk } from '../simulation/journal/disk.ts'
import type { History } from '../simulation/journal/history.ts'
import { simulatedStore } from '../simulation/journal/store.ts'
import { sampleIntent, sampleRow } from '../support/ledger-samples.ts'
import { handClock, turn, type HandClock } from '../support/hand-clock.ts'

interface Bench {
  readonly disk: SimulatedDisk
  readonly ledger: Awaited<ReturnType<typeof openLedger>>
  applications(): number
}

async function bench(
  clock: HandClock,
  isFailing: () => boolean = () => false,
  answered: Promise<void> = Promise.resolve(),
): Promise<Bench> {
  const history: History = []
  const disk = simulatedDisk(new Map(), history, () => ({ error: undefined, part: 1 }), false)
  const store = simulatedStore({ rows: new Map(), aside: new Map(), position: undefined }, history, isFailing)
  let applications = 0
  const ledger = await openLedger({
    files: disk,
    store,
    clock,
    maxJournalBytes: Infinity,
    begin: async () => {},
    waitFor: 'journal',
    async apply(spans) {
      applications++
      await answered
      return projectSpans({ files: disk, store, now: clock.now, setAside() {} }, spans)
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
  return { disk, ledger, applications: () => applications }
}

describe('a ledger that is closed', () => {
  it('copies every row into the store, and leaves no segment', async (t) => {
    const { disk, ledger } = await bench(handClock(t.mock.timers))
    ledger.note(sampleIntent('a'))
    await ledger.settle(sampleRow('a'))
    await ledger.close()
    assert.deepEqual(await disk.list(), [])
  })

  it('leaves the segments if a request is still open', async (t) => {
    const { disk, ledger } = await bench(handClock(t.mock.timers))
    ledger.note(sampleIntent('a'))
    await ledger.close()
    assert.deepEqual(await disk.list(), [1])
  })

  it('leaves the segments if the store does not accept their rows, and does not retry forever', async (t) => {
    const clock = handClock(t.mock.timers)
    const { disk, ledger, applications } = await bench(clock, () => true)
    await ledger.settle(sampleRow('a'))
    await ledger.close()
    assert.deepEqual(await disk.list(), [1])
    const tried = applications()
    clock.advance(10_000)
    await turn()
    assert.equal(applications(), tried)
  })

  it('waits ten seconds for a store that does not answer, and leaves the segments', async (t) => {
    const clock = handClock(t.mock.timers)
    const { disk, ledger } = await bench(clock, () => false, new Promise(() => {}))
    await ledger.settle(sampleRow('a'))
    let isClosed = false
    const closed = ledger.close().then(() => (isClosed = true))
    await turn()
    clock.advance(9999)
    await turn()
    assert.equal(isClosed, false)
    clock.advance(1)
    await closed
    assert.deepEqual(await disk.list(), [1])
  })

  it('closes even if a segment is missing when it removes it', async (t) => {
    const { disk, ledger } = await bench(handClock(t.mock.timers))
    await ledger.settle(sampleRow('a'))
    const list = disk.list.bind(disk)
    disk.list = async () => [...(await list()), 99]
    await ledger.close()
    assert.deepEqual(await list(), [])
  })
})
