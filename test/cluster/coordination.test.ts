import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openCoordination } from '../../src/open-coordination.ts'
import { systemClock } from '../../src/shared/system-clock.ts'

describe('a service without other replicas', () => {
  it('lists itself with its load, and drains when its name is given', async () => {
    const events: string[] = []
    const parts = await openCoordination(
      undefined,
      { ...systemClock, now: () => 5 },
      { version: '1.2.3', ledger: () => ({ journalBytes: 7, journalLagMs: 8 }), isDraining: () => true },
      {
        joined: () => events.push('joined'),
        lost: () => events.push('lost'),
        drainRequested: () => events.push('drain'),
        unreached: () => events.push('unreached'),
      },
    )
    const limits = { tokenBudget: 30, maxConcurrentRequests: 2, maxQueueDepth: 5, maxWaitMs: 1000 }
    parts.admission.setLanes(
      new Map([
        ['a', limits],
        ['b', limits],
      ]),
    )
    const tickets = ['a', 'a', 'a', 'b', 'b', 'b', 'b'].map((lane) =>
      parts.admission.enter({ lane, workspace: 'acme', cost: 10 }, () => {}),
    )
    const { coordination } = parts
    assert.deepEqual(await coordination.list(), [
      {
        name: coordination.replica,
        version: '1.2.3',
        startedAt: 5,
        epoch: null,
        inFlightRequests: 4,
        queueDepth: 3,
        journalBytes: 7,
        journalLagMs: 8,
        isDraining: true,
      },
    ])
    assert.deepEqual([coordination.state(), coordination.replicas()], ['alone', 1])
    assert.equal(parts.link, undefined)
    assert.equal(await coordination.drain('another'), false)
    assert.deepEqual(events, [])
    assert.equal(await coordination.drain(coordination.replica), true)
    assert.deepEqual(events, ['drain'])
    for (const ticket of tickets) ticket.leave()
    await parts.close()
  })
})
