import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import { Redis } from 'ioredis'
import { luaBeside } from '../../src/cluster/redis/script.ts'
import { laneKeys, laneScripts, limitValues } from '../../src/queue/redis/lane-scripts.ts'
import type { LaneLimits } from '../../src/queue/lane.ts'
import { startRedis, type RedisServer } from '../support/redis-server.ts'

/** The rules of a lane across replicas, one call at a time, in a real Redis whose time the test sets. */

const source = new URL('../../src/queue/redis/', import.meta.url).href
const outside = `
local function clock() return tonumber(redis.call('GET', 'now')) end
local function notify(replica, message) redis.call('RPUSH', 'sent', replica .. ' ' .. message) end
`
const scripts = laneScripts((name) => (name === 'outside' ? outside : luaBeside(source, name)))
const keys = laneKeys('lane')
const SECOND = 1_000_000
const LEASE = 9 * SECOND
const START = 1_700_000_000 * SECOND
const DAY_MS = 86_400_000
const limits: LaneLimits = {
  tokenBudget: 100,
  maxConcurrentRequests: 2,
  maxQueueDepth: 2,
  maxWaitMs: 3000,
  batch: { reserveConcurrent: 0, reserveTokens: 0 },
}

let server: RedisServer
let redis: Redis
let now = START
before(async () => {
  server = await startRedis()
  redis = new Redis({ path: server.socket })
})
after(async () => {
  redis.disconnect()
  await server.remove()
})
beforeEach(async () => {
  now = START
  await redis.flushall()
})

/** Whatever happened in a test: once both replicas have left, or their leases have ended, Redis has nothing more of what they had. */
afterEach(async () => {
  for (const replica of ['a', 'b']) await run('part', replica)
  now += LEASE
  await run('settle', 'a')
  const lane = await redis.hgetall(keys[0] ?? '')
  const kept = ['batch_limits', 'epoch', 'figures', 'limits', 'per_workspace']
  assert.deepEqual(Object.keys(lane).toSorted(), kept, 'neither members nor promises')
  assert.match(lane['figures'] ?? '', /^0 0 0 0 /, 'nothing counts as in flight or promised')
  for (const key of keys.slice(1)) assert.equal(await redis.exists(key), 0, key)
})

async function run(name: keyof typeof scripts, replica: string, ...values: (string | number)[]): Promise<unknown> {
  await redis.set('now', now)
  return redis.eval(scripts[name].lua, keys.length, ...keys, replica, 1, ...values)
}

/** The messages since the last time, as `REPLICA ID EVENT`. */
async function sent(): Promise<readonly string[]> {
  const messages = await redis.lrange('sent', 0, -1)
  await redis.del('sent')
  return messages.map((it) => it.replace(`${keys[0]}\n`, '').replaceAll(/\s+/g, ' '))
}

interface Joining {
  readonly changes?: Partial<LaneLimits>
  readonly epoch?: string
  readonly quiet?: number
  readonly isNewest?: 0 | 1
  readonly promised?: readonly [requests: number, tokens: number]
  readonly places?: readonly (string | number)[]
}
const join = (
  replica: string,
  { changes, epoch = 'e', quiet = 0, isNewest = 0, promised = [0, 0], places = [] }: Joining = {},
) =>
  run('join', replica, epoch, quiet, LEASE, ...limitValues({ ...limits, ...changes }), isNewest, ...promised, ...places)

const enter = (id: string, cost = 10, replica = id[0] ?? '') => run('enter', replica, id, cost)
const batch = (id: string, cost = 10, maxWait = -1) => run('enter-batch', id[6] ?? '', id, cost, maxWait)
const leave = (id: string) => run('leave', id.replace('batch ', '')[0] ?? '', id)
const heartbeat = (replica: string, requests = 0, tokens = 0) =>
  run('heartbeat', replica, LEASE, requests, tokens) as Promise<readonly unknown[] | null>
/** In flight (requests, tokens), the queue, the replicas, the longest wait, and of batch places in flight and waiting. */
const figures = async () => ((await run('status', 'a')) as (string | number)[]).slice(5).map(Number)

const admitted = ['admitted']
const queued = (number: number) => ['queued', String(number)]

describe('a lane in Redis', () => {
  it('admits within its limits, then lets requests wait in order, up to its depth', async () => {
    await join('a')
    assert.deepEqual(await enter('a.1 w', 101), ['too_large'])
    assert.deepEqual([await enter('a.1 w', 100), await enter('a.1 w', 100)], [admitted, admitted])
    assert.deepEqual([await enter('a.2 w'), await enter('a.3 w')], [queued(now), queued(now + 1)])
    assert.deepEqual([await enter('a.3 w'), await enter('a.4 w')], [queued(now + 1), ['queue_full']])
    now += 7
    assert.deepEqual(await figures(), [1, 100, 2, 1, 7, 0, 0, 0])
    await leave('a.1 w')
    assert.deepEqual(await sent(), ['a a.2 w granted 7', 'a a.3 w granted 6'])
    assert.deepEqual(await figures(), [2, 20, 0, 1, 0, 0, 0, 0])
    await leave('a.1 w')
    assert.deepEqual(await enter('a.5 w', 1), queued(now))
  })

  it('holds back all requests behind one that does not fit', async () => {
    await join('a')
    await enter('a.1 w', 60)
    assert.deepEqual([await enter('a.2 w', 41), await enter('a.3 w', 1)], [queued(now), queued(now + 1)])
    await leave('a.2 w')
    assert.deepEqual(await sent(), ['a a.3 w granted -1'])
  })

  it('refuses requests that have waited for as long as they may, or that may not wait', async () => {
    await join('a')
    await enter('a.1 w', 100)
    await enter('a.2 w')
    now += 3 * SECOND - 1
    await run('settle', 'a')
    assert.deepEqual(await sent(), [])
    now += 1
    assert.deepEqual([await enter('a.3 w'), await sent()], [queued(now), ['a a.2 w overloaded']])
    await join('b', { changes: { maxWaitMs: 0 }, isNewest: 1 })
    assert.deepEqual(await enter('b.1 w'), ['overloaded'])
  })

  it('limits the places of a workspace, those that wait included', async () => {
    await join('a', { changes: { maxRequestsPerWorkspace: 2, maxConcurrentRequests: 1 } })
    assert.deepEqual([await enter('a.1 w'), await enter('a.2 w')], [admitted, queued(now)])
    assert.deepEqual([await enter('a.3 w'), await enter('a.3 v')], [['workspace_queue_full'], queued(now + 1)])
    await leave('a.1 w')
    assert.deepEqual(await enter('a.4 w'), queued(now + 2))
    await leave('a.2 w')
    await leave('a.4 w')
    assert.deepEqual(await redis.hgetall(keys[5] ?? ''), { v: '1' })
    await leave('a.3 v')
    assert.deepEqual([await batch('batch a.5 v'), await redis.hgetall(keys[5] ?? '')], [admitted, {}])
    await run('limits', 'a', ...limitValues({ ...limits, maxRequestsPerWorkspace: 1 }))
    assert.deepEqual([await enter('a.6 v'), await enter('a.7 v')], [admitted, ['workspace_queue_full']])
    await run('limits', 'a', ...limitValues(limits))
    assert.deepEqual(await redis.hgetall(keys[5] ?? ''), {})
  })

  it('gives a grant back that is not acknowledged within 2.5 seconds, with all that its replica waits for', async () => {
    await join('a')
    await join('b')
    await enter('a.0 w', 30)
    await enter('b.1 w', 70)
    await enter('a.1 w', 70)
    await enter('a.2 w')
    await leave('b.1 w')
    now += 2.5 * SECOND - 1
    await run('settle', 'b')
    assert.deepEqual(await run('acknowledge', 'b', 'a.1 w'), 0)
    assert.deepEqual(await figures(), [2, 100, 1, 2, now - START - 1, 0, 0, 0])
    now += 1
    await run('settle', 'b')
    assert.deepEqual(await figures(), [1, 30, 0, 1, 0, 0, 0, 0], 'what runs still counts')
    assert.deepEqual([await enter('a.3 w'), await run('acknowledge', 'a', 'a.1 w')], [['unknown'], 0])
    assert.equal(await heartbeat('a'), null)
  })

  it('keeps a grant that is acknowledged, and one of a replica that enters again', async () => {
    await join('a')
    await enter('a.1 w', 100)
    for (const id of ['a.2 w', 'a.3 w']) await enter(id)
    await leave('a.1 w')
    assert.equal(await run('acknowledge', 'a', 'a.2 w', 'a.9 w'), 0, 'one of them is unknown')
    assert.equal(await run('acknowledge', 'a', 'a.2 w', 'a.2 w'), 1)
    assert.deepEqual(await enter('a.3 w'), admitted)
    now += 3 * SECOND
    await run('settle', 'a')
    assert.deepEqual((await figures()).slice(0, 4), [2, 20, 0, 1])
  })

  it('frees all that a replica has when its lease has ended, which a heartbeat renews', async () => {
    await join('a')
    await join('b', { promised: [1, 50] })
    await enter('b.1 w', 40)
    await enter('b.2 w', 60)
    now += LEASE - 1
    await heartbeat('a')
    assert.deepEqual(await enter('a.1 w', 70), queued(now))
    now += 1
    await run('settle', 'a')
    assert.deepEqual(await sent(), ['a a.1 w granted 1'])
    assert.deepEqual(await figures(), [1, 70, 0, 1, 0, 0, 0, 0])
    assert.deepEqual(await enter('b.3 w'), ['unknown'])
  })
})

describe('a replica that joins a lane in Redis', () => {
  it('sends what it has in flight, and what waits with its number or its age, and for how long it may still wait', async () => {
    await join('a')
    const places = ['a.1 w', 'in_flight', 95, '-', 'a.2 w', 'queued', 20, `${now - 50} 100`]
    await join('a', { places: [...places, 'a.3 w', 'queued', 10, '-60 200'] })
    assert.deepEqual(await figures(), [1, 95, 2, 1, 60, 0, 0, 0])
    now += 100
    await run('settle', 'a')
    assert.deepEqual(await sent(), ['a a.2 w overloaded'])
    now += 99
    await run('settle', 'a')
    await leave('a.1 w')
    assert.deepEqual(await sent(), ['a a.3 w granted 259'])
    await enter('a.4 w', 90)
    assert.deepEqual(await enter('a.5 w'), queued(now))
  })

  it('replaces what an earlier incarnation had, and gives no number twice', async () => {
    await join('a')
    await enter('a.1 w', 60)
    await enter('a.2 w', 60)
    const later = now + 500
    await join('a', { places: ['a.9 w', 'in_flight', 100, '-', 'a.2 w', 'queued', 60, `${later} 9000`] })
    assert.deepEqual(await figures(), [1, 100, 1, 1, 0, 0, 0, 0])
    assert.deepEqual(await enter('a.3 w'), queued(later + 1))
  })

  it('admits nothing in a new epoch until it is quiet no more, and finds nothing of the last one', async () => {
    await join('b', { promised: [2, 100] })
    await batch('batch b.1 w')
    assert.equal(await join('a', { epoch: 'f', quiet: 200 }), 200)
    assert.deepEqual(await figures(), [0, 0, 0, 1, 0, 0, 0, 0])
    assert.deepEqual([await enter('a.1 w'), await batch('batch a.2 w')], [queued(now), queued(now + 1)])
    assert.deepEqual(await heartbeat('a'), ['0', '0', 1, [], []])
    now += 150
    assert.equal(await join('b', { epoch: 'f', quiet: 999 }), 50)
    now += 50
    await run('settle', 'a')
    assert.deepEqual(await sent(), [`a a.1 w granted 200`, `a batch a.2 w granted 199`])
    assert.equal(await join('b', { epoch: 'f', quiet: 999 }), 0)
  })

  it('brings limits that are new, and finds those of the others otherwise', async () => {
    await join('a')
    const wider = { maxConcurrentRequests: 9, maxRequestsPerWorkspace: 4 }
    const of = async () => ((await run('status', 'a')) as string[]).slice(0, 5)
    await join('b', { changes: wider })
    assert.deepEqual(await of(), ['100', '2', '2', '3000000', '-1'])
    await join('b', { changes: wider, isNewest: 1 })
    assert.deepEqual(await of(), ['100', '9', '2', '3000000', '4'])
    await redis.hdel(keys[0] ?? '', 'batch_limits')
    await join('a', { changes: { batch: { maxShare: 0.5 } } })
    assert.deepEqual([await batch('batch a.1 w', 51), await batch('batch a.1 w', 50)], [['too_large'], admitted])
  })

  it('sends its batch places with their starts and marks', async () => {
    const places = [
      ['batch a.1 w', 'in_flight', 10, 50],
      ['batch a.2 w', 'preempted', 20, 40],
      ['batch a.3 w', 'kept', 30, 30],
      ['batch a.4 w', 'queued', 5, '-7 100'],
      ['batch a.5 w', 'queued', 5, '-6 -1'],
      ['batch a.6 w', 'in_flight', 5, 60],
    ]
    await join('a', { changes: { maxConcurrentRequests: 4 }, places: places.flat() })
    assert.deepEqual(await figures(), [4, 65, 0, 1, 0, 4, 65, 2])
    assert.deepEqual((await heartbeat('a'))?.[4], ['batch a.2 w'])
    await enter('a.9 w')
    assert.deepEqual(await sent(), [], 'the place of the preempted one is enough')
    await enter('a.8 w')
    assert.deepEqual(await sent(), ['a batch a.1 w preempted'], 'the youngest')
    now += 100
    await run('settle', 'a')
    assert.deepEqual(await sent(), ['a batch a.4 w overloaded'], 'the other one may wait as long as it takes')
  })

  it('leaves, and others have its places', async () => {
    await join('a')
    await join('b')
    await enter('a.1 w', 100)
    await enter('b.1 w', 100)
    await run('part', 'a')
    assert.deepEqual(await sent(), ['b b.1 w granted 0'])
    assert.deepEqual((await figures())[3], 1)
  })
})

describe('the promises of replicas', () => {
  it('are equal parts of what is free, rounded up, and the larger of two counts until the next heartbeat', async () => {
    await join('a', { changes: { maxConcurrentRequests: 5 } })
    await join('b')
    assert.deepEqual(await heartbeat('a'), ['3', '50', 2, [], []])
    assert.deepEqual(await heartbeat('b'), ['2', '50', 2, [], []], 'what is left')
    assert.deepEqual(await heartbeat('a', 1, 10), ['3', '50', 2, [], []])
    await enter('b.1 w', 30)
    assert.deepEqual(await heartbeat('b', 1, 20), ['1', '20', 2, [], []])
    assert.deepEqual(await heartbeat('a', 3, 50), ['2', '35', 2, [], []])
    assert.deepEqual(await heartbeat('b', 0, 0), ['1', '20', 2, [], []], 'the answer with 2 and 35 may be lost')
  })

  it('of the own replica pay for a request; those of others are recalled, once in a tenth of a second', async () => {
    await join('a')
    await join('b', { promised: [1, 80] })
    assert.deepEqual(await enter('b.1 w', 80), admitted)
    await leave('b.1 w')
    await heartbeat('b', 1, 80)
    assert.deepEqual([await enter('a.1 w', 20), await sent()], [admitted, []])
    await leave('a.1 w')
    assert.deepEqual([await enter('a.1 w', 60), await sent()], [queued(now), ['b recall']])
    now += 100_000 - 1
    await run('settle', 'a')
    assert.deepEqual(await sent(), [])
    now += 1
    await run('settle', 'a')
    assert.deepEqual(await sent(), ['b recall'])
    await heartbeat('b')
    assert.deepEqual(await sent(), [`a a.1 w granted 100000`])
  })

  it('hold back a request for their requests alone, or for their tokens alone', async () => {
    await join('a')
    await join('b', { promised: [0, 50] })
    assert.deepEqual([await enter('a.1 w', 60), await sent()], [queued(now), ['b recall']])
    await heartbeat('b', 0, 40)
    assert.deepEqual(await sent(), ['a a.1 w granted 0'])
    await heartbeat('b', 1, 0)
    assert.deepEqual([await enter('a.2 w'), await enter('b.2 w')], [queued(now + 1), queued(now + 2)])
    await heartbeat('b', 0, 0)
    assert.deepEqual(await sent(), ['a a.2 w granted -1'])
  })

  it('leave no more to a replica than is free behind its requests', async () => {
    await join('a', { changes: { maxConcurrentRequests: 4 }, promised: [1, 10] })
    await join('b', { promised: [2, 60] })
    assert.deepEqual([await enter('a.1 w', 20), await enter('b.1 w', 30)], [admitted, admitted])
    const left = await redis.hmget(keys[0] ?? '', 'promise a', 'promise b')
    assert.deepEqual(left, ['1 10', '1 40'])
  })

  it('are not renewed while a request waits for them', async () => {
    await join('a')
    await join('b', { promised: [2, 100] })
    await enter('a.1 w')
    assert.deepEqual(await heartbeat('b', 2, 100), ['0', '0', 2, [], []])
    await leave('a.1 w')
    await batch('batch a.2 w')
    assert.deepEqual(await heartbeat('b', 2, 100), ['0', '0', 2, [], []])
    await leave('batch a.2 w')
    assert.deepEqual(await heartbeat('b', 2, 100), ['1', '50', 2, [], []])
  })

  it('come with the grants and preempted places that the replica may have missed, and keep its keys for a day', async () => {
    await join('a', { changes: { maxConcurrentRequests: 1 } })
    await join('b')
    await batch('batch a.1 w')
    await enter('b.1 w')
    assert.deepEqual(await heartbeat('a'), ['0', '0', 2, [], ['batch a.1 w']])
    assert.deepEqual(await heartbeat('b'), ['0', '0', 2, [], []])
    await leave('batch a.1 w')
    assert.deepEqual(await heartbeat('a'), ['0', '45', 2, [], []])
    assert.deepEqual(await heartbeat('b'), ['0', '45', 2, ['b.1 w'], []])
    const left = await redis.pttl(keys[0] ?? '')
    assert.ok(left > DAY_MS - 60_000 && left <= DAY_MS)
  })
})

describe('batch places in Redis', () => {
  const three = { maxConcurrentRequests: 3 }

  it('are admitted beside the reserve and within their share, and wait behind online requests', async () => {
    const rules = { reserveConcurrent: 1, reserveTokens: 40, maxShare: 0.5, maxQueueDepth: 1 }
    await join('a', { changes: { maxConcurrentRequests: 4, batch: rules } })
    assert.deepEqual([await batch('batch a.1 w', 51), await batch('batch a.1 w', 25)], [['too_large'], admitted])
    assert.deepEqual([await batch('batch a.2 w', 26), await batch('batch a.3 w', 25)], [queued(now), ['queue_full']])
    assert.deepEqual([await batch('batch a.1 w', 25), await batch('batch a.2 w', 26)], [admitted, queued(now)])
    await leave('batch a.2 w')
    assert.deepEqual(await batch('batch a.3 w', 25), admitted)
    assert.deepEqual(await batch('batch a.4 w', 1, 0), ['overloaded'])
    assert.deepEqual(await figures(), [2, 50, 0, 1, 0, 2, 50, 0])
    await leave('batch a.1 w')
    await enter('a.5 w', 10)
    assert.deepEqual(await batch('batch a.6 w', 25), admitted, 'up to the reserve of tokens')
    await leave('batch a.6 w')
    await leave('a.5 w')
    await enter('a.7 w', 11)
    assert.deepEqual(await batch('batch a.8 w', 25), queued(now + 1))
  })

  it('may not wait without end if online requests may not wait, and end their wait on time', async () => {
    await join('a', { changes: { maxConcurrentRequests: 1 } })
    await enter('a.1 w')
    await batch('batch a.2 w', 10, 100)
    now += 99
    await run('settle', 'a')
    assert.deepEqual(await sent(), [])
    now += 1
    await run('settle', 'a')
    assert.deepEqual(await sent(), ['a batch a.2 w overloaded'])
    await leave('a.1 w')
    await run('limits', 'a', ...limitValues({ ...limits, maxWaitMs: 0 }))
    assert.deepEqual(await batch('batch a.3 w'), queued(now))
  })

  it('give way to a request, the youngest first and only as many as it needs, and none if all would be too few', async () => {
    await join('a', { changes: three })
    for (const number of [1, 2, 3]) assert.deepEqual(await batch(`batch a.${number} w`, 20), admitted)
    await enter('a.4 w', 60)
    assert.deepEqual(await sent(), ['a batch a.3 w preempted'])
    await enter('a.5 w', 60)
    assert.deepEqual(await sent(), [], 'both others would not be enough')
    await leave('a.5 w')
    await enter('a.6 w', 20)
    assert.deepEqual(await sent(), ['a batch a.2 w preempted'])
    await leave('batch a.3 w')
    assert.deepEqual(await sent(), ['a a.4 w granted 0'])
    assert.deepEqual(await figures(), [3, 100, 1, 1, 0, 2, 40, 0])
    await leave('batch a.2 w')
    assert.deepEqual(await sent(), ['a a.6 w granted -2'])
    await leave('a.4 w')
    assert.deepEqual(await figures(), [2, 40, 0, 1, 0, 1, 20, 0])
  })

  it('may fill the lane, or have a share of it, or none, and then they wait', async () => {
    await join('a')
    assert.deepEqual(await batch('batch a.1 w', 100), admitted)
    await leave('batch a.1 w')
    const half = { maxConcurrentRequests: 4, batch: { ...limits.batch, maxShare: 0.5 } }
    await run('limits', 'a', ...limitValues({ ...limits, ...half }))
    for (const id of ['batch a.2 w', 'batch a.3 w']) assert.deepEqual(await batch(id, 5), admitted)
    assert.deepEqual(await batch('batch a.4 w', 5), queued(now))
    for (const id of ['batch a.2 w', 'batch a.3 w', 'batch a.4 w']) await leave(id)
    await run('limits', 'a', ...limitValues({ ...limits, batch: { ...limits.batch, maxShare: 0 } }))
    assert.deepEqual(await batch('batch a.5 w'), queued(now + 1))
    await leave('batch a.5 w')
    const reserve = { reserveConcurrent: 1, reserveTokens: 60 }
    await run('limits', 'a', ...limitValues({ ...limits, batch: reserve }))
    assert.deepEqual([await batch('batch a.6 w', 41), await batch('batch a.6 w', 40)], [['too_large'], admitted])
    await leave('batch a.6 w')
    assert.deepEqual([await batch('batch a.7 w'), await batch('batch a.8 w')], [admitted, queued(now + 2)])
  })

  it('that gave way to a request that leaves do so for the next one', async () => {
    await join('a', { changes: three })
    for (const number of [3, 2, 1]) await batch(`batch a.${number} w`)
    for (const id of ['a.4 w', 'a.5 w']) {
      await enter(id)
      await leave(id)
    }
    assert.deepEqual(await sent(), ['a batch a.1 w preempted'], 'the youngest')
    await leave('batch a.1 w')
    for (const id of ['a.6 w', 'a.7 w']) await enter(id)
    assert.deepEqual(await sent(), ['a batch a.2 w preempted'], 'once it has left, the next one gives way')
    await enter('a.8 w')
    assert.deepEqual(await sent(), ['a batch a.3 w preempted'])
    await leave('a.8 w')
    await enter('a.9 w')
    assert.deepEqual(await sent(), [])
  })

  it('whose answer has begun let no request wait beyond the depth', async () => {
    await join('a', { changes: { maxConcurrentRequests: 1, maxQueueDepth: 0 } })
    await batch('batch a.1 w')
    await run('keep', 'a', 'batch a.1 w')
    assert.deepEqual(await enter('a.2 w'), ['queue_full'])
  })

  it('do not give way if the lane has them stay, nor one whose answer has begun', async () => {
    await join('a', { changes: { ...three, batch: { ...limits.batch, preempt: false } } })
    for (const number of [1, 2, 3]) await batch(`batch a.${number} w`)
    await enter('a.4 w')
    assert.deepEqual(await sent(), [])
    await run('limits', 'a', ...limitValues({ ...limits, ...three }))
    assert.deepEqual(await sent(), ['a batch a.3 w preempted'])
    await run('keep', 'b', 'batch a.3 w')
    await run('keep', 'a', 'batch a.2 w')
    assert.deepEqual(await sent(), [])
    await run('keep', 'a', 'batch a.3 w')
    assert.deepEqual(await sent(), ['a batch a.1 w preempted'])
    await enter('a.5 w')
    assert.deepEqual(await sent(), [])
  })

  it('let requests wait beyond the depth only while they give way to all of them', async () => {
    await join('a', { changes: { maxConcurrentRequests: 2, maxQueueDepth: 1 } })
    await enter('a.1 w')
    await batch('batch a.2 w')
    assert.deepEqual([await enter('a.3 w'), await enter('a.4 w')], [queued(now), queued(now + 1)])
    assert.deepEqual([await enter('a.5 w'), await sent()], [['queue_full'], ['a batch a.2 w preempted']])
    await leave('a.3 w')
    await leave('a.4 w')
    await leave('batch a.2 w')
    assert.deepEqual(await figures(), [1, 10, 0, 1, 0, 0, 0, 0])
    await run('limits', 'a', ...limitValues({ ...limits, maxQueueDepth: 0 }))
    await batch('batch a.6 w')
    assert.deepEqual(await enter('a.7 w', 101), ['too_large'])
    assert.deepEqual([await enter('a.7 w', 91), await enter('a.8 w')], [['queue_full'], queued(now + 2)])
  })

  it('take turns between workspaces, each in its own order', async () => {
    await join('a', { changes: { maxConcurrentRequests: 1, maxQueueDepth: 9 } })
    await enter('a.0 w')
    for (const id of ['1 w', '2 w', '3 v', '4 w', '5 v']) await batch(`batch a.${id}`)
    const order: string[] = []
    for (let last = 'a.0 w'; order.length < 5;) {
      await leave(last)
      last = /batch \S+ \w/.exec((await sent())[0] ?? '')?.[0] ?? assert.fail()
      order.push(last.replace('batch a.', ''))
    }
    assert.deepEqual(order, ['1 w', '3 v', '2 w', '5 v', '4 w'])
  })

  it('are counted again where an earlier version has removed some', async () => {
    await join('a', { changes: three })
    for (const number of [1, 2, 3]) await batch(`batch a.${number} w`)
    for (const number of [2, 3]) await redis.hdel(keys[4] ?? '', `batch a.${number} w`)
    await redis.hset(keys[0] ?? '', 'figures', '1 10 0 0 0 0 0')
    await enter('a.4 w', 95)
    await enter('a.5 w', 95)
    assert.deepEqual((await figures()).slice(5, 7), [1, 10])
    await run('settle', 'a')
    assert.deepEqual(await sent(), ['a batch a.1 w preempted'])
  })
})
