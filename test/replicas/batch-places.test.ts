import assert from 'node:assert/strict'
import { after, afterEach, before, describe, it } from 'node:test'
import { Redis } from 'ioredis'
import type { Ticket } from '../../src/queue/admission.ts'
import type { LaneLimits } from '../../src/queue/lane.ts'
import { laneKeys, laneScripts, limitValues } from '../../src/queue/redis/lane-scripts.ts'
import { luaBeside, script } from '../../src/cluster/redis/script.ts'
import { settledEpoch, testReplica, type TestReplica } from '../support/redis-replica.ts'
import { startRedis, type RedisServer } from '../support/redis-server.ts'
import { tcpProxy } from '../support/tcp-proxy.ts'
import { eventually } from '../support/waiting.ts'

const limits: LaneLimits = {
  tokenBudget: 1000,
  maxConcurrentRequests: 3,
  maxQueueDepth: 100,
  maxWaitMs: 60_000,
  batch: { reserveConcurrent: 0, reserveTokens: 0 },
}
const LEASE_MS = 1000

describe('batch places of several replicas on one Redis', () => {
  let server: RedisServer
  let keeper: TestReplica
  let lanes = 0
  const opened = new Set<TestReplica>()

  before(async () => {
    server = await startRedis()
    keeper = testReplica(server.url, { leaseMs: LEASE_MS })
    await settledEpoch(keeper)
  })
  after(async () => {
    await keeper.close()
    await server.remove()
  })
  afterEach(async () => {
    for (const replica of opened) await replica.close()
    opened.clear()
  })

  function replica(url = server.url): TestReplica {
    const it = testReplica(url, { leaseMs: LEASE_MS })
    opened.add(it)
    return it
  }

  /** What happens, in order. A preempted place stays until the test makes it leave. */
  async function openLane(replicas: readonly TestReplica[], changes: Partial<LaneLimits> = {}) {
    const lane = `batch lane ${++lanes}`
    const events: string[] = []
    for (const { admission } of replicas) admission.setLanes(new Map([[lane, { ...limits, ...changes }]]))
    await eventually('all replicas have joined', () =>
      replicas.every(({ admission }) => admission.state() === 'joined'),
    )
    const enter = ({ admission }: TestReplica, name: string, workspace: string, isBatch: boolean): Ticket => {
      const batch = isBatch
        ? { maxWaitMs: Infinity, preempted: () => void events.push(`${name} preempted`) }
        : undefined
      return admission.enter({ lane, workspace, cost: 1, batch }, ({ kind }) => void events.push(`${name} ${kind}`))
    }
    return {
      events,
      online: (it: TestReplica, name: string): Ticket => enter(it, name, 'acme', false),
      batch: (it: TestReplica, name: string, workspace = 'acme'): Ticket => enter(it, name, workspace, true),
      happens: (...expected: string[]) => eventually(expected.join(', '), () => events.join() === expected.join()),
      /** In flight, waiting online, and of batch places in flight and waiting. */
      holds: (it: TestReplica, ...expected: number[]) =>
        eventually(expected.join(), async () => {
          const load = (await it.admission.status()).get(lane)!
          const { inFlightRequests, queueDepth, batch } = load
          return [inFlightRequests, queueDepth, batch.inFlightRequests, batch.queueDepth].join() === expected.join()
        }),
    }
  }

  it('[Q2] give way to an online request at another replica, the youngest first, and run again', async () => {
    const [one, other] = [replica(), replica()] as const
    const { online, batch, happens, holds } = await openLane([one, other])
    batch(one, 'old')
    await holds(one, 1, 0, 1, 0)
    const middle = batch(other, 'middle')
    await holds(one, 2, 0, 2, 0)
    const young = batch(other, 'young')
    await happens('old admitted', 'middle admitted', 'young admitted')
    online(one, 'ann')
    await happens('old admitted', 'middle admitted', 'young admitted', 'young preempted')
    await holds(one, 3, 1, 3, 0)
    assert.equal(young.keep(), false)
    batch(other, 'again')
    await holds(other, 3, 1, 3, 1)
    young.leave()
    const soFar = ['old admitted', 'middle admitted', 'young admitted', 'young preempted', 'ann admitted']
    await happens(...soFar)
    middle.leave()
    await happens(...soFar, 'again admitted')
    await holds(one, 3, 0, 2, 0)
  })

  it('[Q2] let a request wait beyond the depth only while they give way to it', async () => {
    const one = replica()
    const { batch, online, happens } = await openLane([one], { maxConcurrentRequests: 2, maxQueueDepth: 0 })
    batch(one, 'line')
    await happens('line admitted')
    online(one, 'ann')
    await happens('line admitted', 'ann admitted')
    online(one, 'bob')
    await happens('line admitted', 'ann admitted', 'line preempted')
    online(one, 'cat')
    await happens('line admitted', 'ann admitted', 'line preempted', 'cat queue_full')
  })

  it('[Q2] are kept once their answer has begun: another one gives way', async () => {
    const [one, other] = [replica(), replica()] as const
    const { online, batch, happens, holds } = await openLane([one, other])
    batch(one, 'a')
    await holds(one, 1, 0, 1, 0)
    batch(one, 'b')
    await holds(one, 2, 0, 2, 0)
    const kept = batch(one, 'c')
    await happens('a admitted', 'b admitted', 'c admitted')
    assert.equal(kept.keep(), true)
    online(other, 'ann')
    await happens('a admitted', 'b admitted', 'c admitted', 'b preempted')
  })

  it('take turns between the workspaces of all replicas', async () => {
    const [one, other] = [replica(), replica()] as const
    const { online, batch, happens, holds, events } = await openLane([one, other], { maxConcurrentRequests: 1 })
    const first = online(one, 'ann')
    await happens('ann admitted')
    const tickets = new Map<string, Ticket>()
    for (const [index, [it, name, workspace]] of (
      [
        [one, 'a1', 'acme'],
        [one, 'a2', 'acme'],
        [other, 'b1', 'bolt'],
        [other, 'a3', 'acme'],
        [one, 'b2', 'bolt'],
      ] as const
    ).entries()) {
      tickets.set(name, batch(it, name, workspace))
      await holds(one, 1, 0, 0, index + 1)
    }
    first.leave()
    for (const [index, name] of ['a1', 'b1', 'a2', 'b2', 'a3'].entries()) {
      await eventually(`${name} is next`, () => events[index + 1] === `${name} admitted`)
      tickets.get(name)!.leave()
    }
  })

  it('[Q1] are freed with the replica that had them when it is killed, those that wait, too', async () => {
    const [dead, alive] = [replica(), replica()] as const
    const { batch, online, happens, holds, events } = await openLane([dead, alive])
    for (const name of ['a', 'b', 'c', 'waits']) batch(dead, name)
    await holds(alive, 3, 0, 3, 1)
    batch(alive, 'ours', 'bolt')
    await holds(alive, 3, 0, 3, 2)
    opened.delete(dead)
    await dead.vanish()
    events.length = 0
    await happens('ours admitted')
    await holds(alive, 1, 0, 1, 0)
    online(alive, 'ann')
    await happens('ours admitted', 'ann admitted')
  })

  it('[Q1] stay, with their order and marks, when the connection of their replica breaks', async (t) => {
    const proxy = await tcpProxy(server.port)
    t.after(() => proxy.close())
    const [cut, other] = [replica(`redis://127.0.0.1:${proxy.port}`), replica()] as const
    const { batch, online, happens, holds } = await openLane([cut, other])
    const [, kept, given] = [batch(cut, 'a'), batch(cut, 'b'), batch(cut, 'c')]
    await happens('a admitted', 'b admitted', 'c admitted')
    assert.equal(kept.keep(), true)
    batch(cut, 'waits')
    online(other, 'ann')
    await happens('a admitted', 'b admitted', 'c admitted', 'c preempted')
    proxy.cut()
    await eventually('it noticed', () => cut.log.some((line) => line.startsWith('lost')))
    await eventually('it is back', () => cut.admission.state() === 'joined')
    await holds(other, 3, 1, 3, 1)
    online(other, 'bob')
    const soFar = ['a admitted', 'b admitted', 'c admitted', 'c preempted', 'a preempted']
    await happens(...soFar)
    given.leave()
    await happens(...soFar, 'ann admitted')
  })
})

/** The scripts, one call at a time. The replica `old` runs those of the last version that did not know batch places. */
describe('batch places in the scripts, also beside an earlier version', () => {
  let server: RedisServer
  let redis: Redis
  let observer: Redis
  const messages: string[] = []
  const keys = laneKeys('lane')
  const scripts = laneScripts()
  const earlier = new URL('../fixtures/earlier-lane-scripts/', import.meta.url).href
  const values = limitValues({ ...limits, maxRequestsPerWorkspace: 10 })

  before(async () => {
    server = await startRedis()
    redis = new Redis(server.url)
    observer = redis.duplicate()
    observer.on('pmessage', (_pattern, channel: string, message: string) => {
      const [, id = '', event = ''] = message.split('\n')
      messages.push(`${channel.split(':')[2]}: ${id} ${event.split(' ')[0]}`)
    })
    await observer.psubscribe('weir:told:*')
  })
  after(async () => {
    observer.disconnect()
    redis.disconnect()
    await server.remove()
  })
  afterEach(async () => {
    await redis.flushall()
    messages.length = 0
  })

  const today = (name: keyof typeof scripts, replica: string, ...args: (string | number)[]) =>
    redis.eval(scripts[name].lua, keys.length, ...keys, replica, 1, ...args)

  function former(name: string, ...args: (string | number)[]) {
    const outside = luaBeside(new URL('../../src/queue/redis/', import.meta.url).href, 'outside')
    const { lua } = script(outside, luaBeside(earlier, 'lane'), luaBeside(earlier, name))
    return redis.eval(lua, 6, ...keys.slice(0, 6), 'old', 1, ...args)
  }

  const LEASE_US = 60_000_000
  const join = (replica: string, epoch = 'e', ...places: (string | number)[]) =>
    today('join', replica, epoch, 0, LEASE_US, ...values, 1, 0, 0, ...places)
  const joinEarlier = (epoch = 'e') => former('join', epoch, 0, LEASE_US, ...values.slice(0, 5), 1, 0, 0)
  const enterBatch = (replica: string, id: string) => today('enter-batch', replica, id, 1, -1)
  /** In flight, waiting online, and of batch places in flight and waiting. */
  async function figures(): Promise<readonly number[]> {
    const answer = ((await today('status', 'new')) as (string | number)[]).map(Number)
    return [answer[5]!, answer[7]!, answer[10]!, answer[12]!]
  }

  it('that are kept before their replica knows of a preemption make another one give way', async () => {
    await join('new')
    for (const number of [1, 2, 3]) await enterBatch('new', `batch new.${number} acme`)
    await today('enter', 'new', 'new.4 acme', 1)
    await today('keep', 'new', 'batch new.3 acme')
    await today('keep', 'new', 'batch new.3 acme')
    await observer.ping()
    assert.deepEqual(messages, ['new: batch new.3 acme preempted', 'new: batch new.2 acme preempted'])
  })

  it('stay preempted when the request that needed them leaves, and the next one needs no other', async () => {
    await join('new')
    for (const number of [1, 2, 3]) await enterBatch('new', `batch new.${number} acme`)
    await today('enter', 'new', 'new.4 acme', 1)
    await today('leave', 'new', 'new.4 acme')
    await today('enter', 'new', 'new.5 acme', 1)
    await observer.ping()
    assert.deepEqual(messages, ['new: batch new.3 acme preempted'])
    await today('enter', 'new', 'new.6 acme', 1)
    await today('leave', 'new', 'batch new.3 acme')
    await observer.ping()
    assert.deepEqual(messages.slice(1), ['new: batch new.2 acme preempted', 'new: new.5 acme granted'])
  })

  it('are in the totals that an earlier version reads, and give way to its requests', async () => {
    await joinEarlier()
    await join('new')
    for (const id of ['batch new.1 acme', 'batch new.2 acme'])
      assert.deepEqual(await enterBatch('new', id), ['admitted'])
    assert.deepEqual(await former('enter', 'old.1 acme', 1), ['admitted'])
    assert.equal(((await former('enter', 'old.2 acme', 1)) as string[])[0], 'queued')
    await today('heartbeat', 'new', LEASE_US, 0, 0)
    await eventually('the youngest gives way', () => messages.join() === 'new: batch new.2 acme preempted')
    await today('leave', 'new', 'batch new.2 acme')
    await eventually('its place is the earlier version’s', () => messages[1] === 'old: old.2 acme granted')
    assert.equal(await former('acknowledge', 'old.2 acme'), 1)
    assert.deepEqual(await figures(), [3, 0, 1, 0])
    assert.deepEqual(await redis.hgetall(keys[5]!), { acme: '2' }, 'batch places do not count for their workspace')
    for (const id of ['old.1 acme', 'old.2 acme']) await former('leave', id)
    assert.deepEqual(await figures(), [1, 0, 1, 0])
  })

  it('are counted right after an earlier version has removed a dead replica', async () => {
    await joinEarlier()
    await join('new')
    await join('dead')
    await enterBatch('new', 'batch new.1 acme')
    await enterBatch('dead', 'batch dead.1 acme')
    assert.deepEqual(await former('enter', 'old.1 acme', 1), ['admitted'])
    await enterBatch('dead', 'batch dead.2 bolt')
    assert.deepEqual(await figures(), [3, 0, 2, 1])
    await redis.zadd(keys[2]!, 1, 'lease dead')
    for (const id of ['old.2 acme', 'old.3 acme']) await former('enter', id, 1)
    await today('heartbeat', 'new', LEASE_US, 0, 0)
    await today('heartbeat', 'new', LEASE_US, 0, 0)
    await eventually('ours gives way', () => messages.join() === 'new: batch new.1 acme preempted')
    assert.deepEqual(await figures(), [3, 1, 1, 1])
    await join('new', 'e', 'batch new.1 acme', 'preempted', 1, 5)
    assert.deepEqual(await figures(), [3, 1, 1, 1])
    await today('leave', 'new', 'batch new.1 acme')
    assert.equal(await former('acknowledge', 'old.3 acme'), 1)
    for (const id of ['old.1 acme', 'old.2 acme', 'old.3 acme']) await former('leave', id)
    // The place that waits belongs to a replica that is gone. It is granted, and not acknowledged in time.
    await today('settle', 'new')
    assert.deepEqual(await figures(), [1, 0, 1, 0])
    await redis.zadd(keys[3]!, 1, 'batch dead.2 bolt')
    await today('settle', 'new')
    assert.deepEqual(await figures(), [0, 0, 0, 0])
  })

  it('start empty in an epoch that an earlier version has begun', async () => {
    await join('new')
    for (const number of [1, 2, 3, 4]) await enterBatch('new', `batch new.${number} acme`)
    assert.deepEqual(await figures(), [3, 0, 3, 1])
    await joinEarlier('f')
    assert.deepEqual(await figures(), [0, 0, 0, 0])
    assert.deepEqual(await enterBatch('new', 'batch new.5 acme'), ['unknown'])
    await today('join', 'new', 'f', 0, LEASE_US, ...values, 0, 0, 0, 'batch new.1 acme', 'in_flight', 1, 10)
    assert.deepEqual(await enterBatch('new', 'batch new.6 acme'), ['admitted'])
    assert.deepEqual(await figures(), [2, 0, 2, 0])
    await former('enter', 'old.1 acme', 1)
    await former('enter', 'old.2 acme', 1)
    await today('heartbeat', 'new', LEASE_US, 0, 0)
    await eventually('only what is there gives way', () => messages.join() === 'new: batch new.6 acme preempted')
  })

  it('are not preempted once more for a request that an earlier version has removed', async () => {
    await joinEarlier()
    await join('new')
    for (const number of [1, 2, 3]) await enterBatch('new', `batch new.${number} acme`)
    await former('enter', 'old.1 acme', 1)
    await today('heartbeat', 'new', LEASE_US, 0, 0)
    await former('leave', 'old.1 acme')
    await today('heartbeat', 'new', LEASE_US, 0, 0)
    await former('enter', 'old.2 acme', 1)
    await today('heartbeat', 'new', LEASE_US, 0, 0)
    // An answer on the connection that has subscribed comes behind the messages.
    await observer.ping()
    assert.deepEqual(messages, ['new: batch new.3 acme preempted'], 'the place that gives way already is enough')
  })
})
