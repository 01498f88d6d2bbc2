import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openCoordination } from '../../src/open-coordination.ts'
import { scripts } from '../../src/queue/redis/lane-scripts.ts'
import { systemClock } from '../../src/shared/system-clock.ts'
import { scriptedRedis, type Reply } from '../support/scripted-redis.ts'
import { eventually } from '../support/waiting.ts'

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

describe('a replica that closes', () => {
  it('leaves its lanes before it gives up its lease', async (t) => {
    const answers = new Map<string | undefined, Reply>([
      [scripts.join.sha, 0],
      [scripts.heartbeat.sha, ['0', '0', 1, [], []]],
    ])
    const redis = await scriptedRedis(({ name, values }) => {
      if (name !== 'evalsha') return undefined
      return values.includes('weir:{replicas}') ? ['epoch-1', 0, 1, 0] : (answers.get(values[0]) ?? [])
    })
    t.after(() => redis.close())
    const own = { version: '1', ledger: () => ({ journalBytes: 0, journalLagMs: 0 }), isDraining: () => false }
    const events = { joined() {}, lost() {}, drainRequested() {}, unreached() {} }
    const { admission, coordination, close } = await openCoordination(redis.url, systemClock, own, events)
    t.after(close)
    const limits = { tokenBudget: 30, maxConcurrentRequests: 2, maxQueueDepth: 5, maxWaitMs: 1000 }
    admission.setLanes(new Map([['a', limits]]))
    await eventually('it has joined', () => coordination.state() === 'joined')
    await close()
    const left = redis.received.findIndex(({ values }) => values[0] === scripts.part.sha)
    assert.ok(left > 0 && left < redis.received.findIndex(({ name }) => name === 'zrem'))
  })
})
