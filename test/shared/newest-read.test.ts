import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openAccounts } from '../../src/workspaces/accounts.ts'
import { openLaneSettings } from '../../src/catalog/lane-settings.ts'
import { memoryChanges } from '../../src/cluster/changes/memory.ts'
import { newestRead } from '../../src/shared/newest-read.ts'
import { testBooks } from '../support/books.ts'
import { gate } from '../support/waiting.ts'

const clock = { now: () => 1000, monotonic: () => 0 }

describe('a snapshot that is read again after each change', () => {
  it('is from the newest read, whatever order the reads end in', async () => {
    const gates = [gate(), gate(), gate()]
    let begun = 0
    let inForce = 0
    const reload = newestRead(
      async () => {
        const own = begun++
        await gates[own]!.opened
        return own
      },
      (own) => (inForce = own),
    )
    const reads = [reload(), reload(), reload()]
    for (const [order, expected] of [
      [1, 1],
      [0, 1],
      [2, 2],
    ] as const) {
      gates[order]!.open()
      await reads[order]
      assert.equal(inForce, expected)
    }
  })

  it('has the workspace and the drained address that were just stored, even if an older read ends later', async (t) => {
    const { store, close } = await testBooks(1000)
    t.after(close)
    const late = gate()
    let isNextHeld = false
    /** The next read sees what is there now, but ends when the gate opens. */
    function heldOnce<Result>(read: () => Promise<Result>): () => Promise<Result> {
      return async () => {
        const isHeld = isNextHeld
        isNextHeld = false
        const result = await read()
        if (isHeld) await late.opened
        return result
      }
    }
    const slow = {
      ...store,
      workspaces: heldOnce(store.workspaces),
      laneSettings: heldOnce(store.laneSettings),
    }
    const changes = memoryChanges()
    const accounts = await openAccounts(slow, clock, changes)
    const lanes = await openLaneSettings(slow, changes)
    isNextHeld = true
    const older: Promise<unknown>[] = [changes.announce('accounts')]
    isNextHeld = true
    older.push(lanes.reload())
    await accounts.createWorkspace('new')
    await store.setDrained('http://engine', true)
    await lanes.reload()
    late.open()
    await Promise.all(older)
    assert.equal(accounts.workspace('new').name, 'new')
    assert.deepEqual(lanes.drainedUrls(), ['http://engine'])
  })
})
