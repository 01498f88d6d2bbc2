import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { Redis } from 'ioredis'
import { laneKeys, laneScripts } from '../../src/queue/redis/lane-scripts.ts'
import type { RedisLink } from '../../src/cluster/redis/link.ts'
import { luaBeside } from '../../src/cluster/redis/script.ts'
import { replicaList } from '../../src/cluster/redis/replica-list.ts'
import { startRedis, type RedisServer } from '../support/redis-server.ts'

const [HASH, LEASES, VERSIONS] = ['weir:{replicas}', 'weir:{replicas}:leases', 'weir:{replicas}:versions']
const LEASE_US = 60_000_000
const lua = (folder: string, name: string): string =>
  luaBeside(new URL(`../../src/${folder}/`, import.meta.url).href, name)

/** Each script on its own, in a real Redis, with leases and counts that the test sets around Redis' own time. */
describe('the scripts of replicas', () => {
  let server: RedisServer
  let redis: Redis
  before(async () => {
    server = await startRedis()
    redis = new Redis(server.url)
  })
  after(async () => {
    redis.disconnect()
    await server.remove()
  })
  beforeEach(() => redis.flushall())

  async function nowUs(): Promise<number> {
    const [seconds, micros] = await redis.time()
    return Number(seconds) * 1_000_000 + Number(micros)
  }
  const live = (replica: string, runId = 'run', said = '{}') =>
    redis.eval(lua('cluster/redis', 'replicas'), 2, HASH, LEASES, replica, runId, LEASE_US, said) as Promise<
      [epoch: string, quiet: number, replicas: number, isDrainRequested: number]
    >

  it('[Q1] start an epoch that admits nothing for one lease, and stay in it', async () => {
    const [epoch, quiet, replicas] = await live('one')
    assert.deepEqual([quiet, replicas], [LEASE_US, 1])
    const [same, left, both] = await live('two')
    assert.deepEqual([same, both], [epoch, 2])
    assert.ok(left > 0 && left < LEASE_US)
    await redis.hset(HASH, { quiet_until: '1' })
    assert.equal((await live('one'))[1], 0)
  })

  it('[Q1] start a new epoch on another server, without the replicas of the last one', async () => {
    const [epoch] = await live('one', 'run', '{"a":1}')
    await redis.hset(HASH, 'drain two', 1)
    const [next, quiet, replicas] = await live('two', 'another run')
    assert.ok(Number(next) > Number(epoch))
    assert.deepEqual([quiet, replicas], [LEASE_US, 1])
    assert.equal(await redis.hexists(HASH, 'replica one'), 0)
    assert.equal(await redis.hexists(HASH, 'drain two'), 0)
  })

  it('[Q1] forget a replica when its lease has ended, with its state and its drain request', async () => {
    await live('one')
    await live('dead')
    await redis.hset(HASH, 'drain dead', 1)
    await redis.zadd(LEASES, await nowUs(), 'dead')
    assert.equal((await live('one'))[2], 1)
    assert.deepEqual(await redis.zrange(LEASES, '0', '-1'), ['one'])
    assert.deepEqual([await redis.hexists(HASH, 'replica dead'), await redis.hexists(HASH, 'drain dead')], [0, 0])
  })

  it('[Q1] renew a lease from the time of the call', async () => {
    const before = await nowUs()
    await live('one')
    const ends = Number(await redis.zscore(LEASES, 'one'))
    assert.ok(ends >= before + LEASE_US && ends <= (await nowUs()) + LEASE_US)
  })

  /** A link that runs scripts, and nothing else. */
  function link(follow: RedisLink['follow'] = () => {}): RedisLink {
    const run: RedisLink['run'] = ({ lua: text }, keys, values) => redis.eval(text, keys.length, ...keys, ...values)
    const membership = () => ({ epoch: 'one', incarnation: 1, quietUntilMs: 0 })
    return { run, membership, follow } as unknown as RedisLink
  }

  it('list the live replicas with their state, and request one of them to drain', async () => {
    const loaded: string[] = []
    const replicas = replicaList(link(({ scripts }) => void loaded.push(...scripts.map((it) => it.lua))))
    assert.deepEqual(loaded, [lua('cluster/redis', 'listed'), lua('cluster/redis', 'drain')])
    await live('one', 'run', '{"inFlight":1}')
    await live('two', 'run', '{"inFlight":2}')
    await live('dead')
    await redis.zadd(LEASES, await nowUs(), 'dead')
    await redis.hdel(HASH, 'replica two')
    const listed = await replicas.list()
    assert.deepEqual(
      listed.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
      [
        { name: 'one', about: { inFlight: 1 } },
        { name: 'two', about: {} },
      ],
    )
    assert.equal(await replicas.drain('unknown'), false)
    assert.equal(await redis.hexists(HASH, 'drain unknown'), 0)
    assert.equal((await live('one'))[3], 0)
    assert.equal(await replicas.drain('one'), true)
    assert.deepEqual([(await live('one'))[3], (await live('two'))[3]], [1, 0])
  })

  it('count a change, publish it with its version, and return the live replicas', async () => {
    await live('one')
    await live('dead')
    await redis.zadd(LEASES, await nowUs(), 'dead')
    const messages = redis.duplicate()
    const received: string[] = []
    messages.on('message', (_channel: string, message: string) => received.push(message))
    await messages.subscribe('weir:changes')
    const announce = lua('cluster/changes/redis', 'announce')
    assert.deepEqual(await redis.eval(announce, 2, VERSIONS, LEASES, 'keys', 'one\n1\nkeys'), [1, ['one']])
    assert.deepEqual(await redis.eval(announce, 2, VERSIONS, LEASES, 'keys', 'one\n2\nkeys'), [2, ['one']])
    // An answer on the connection that has subscribed comes behind the messages.
    await messages.ping()
    messages.disconnect()
    assert.deepEqual(received, ['one\n1\nkeys\n1', 'one\n2\nkeys\n2'])
    const versions = lua('cluster/changes/redis', 'versions')
    assert.deepEqual(await redis.eval(versions, 1, VERSIONS, 'accounts', 'keys'), [null, '2'])
  })

  it('[R1] count a rate up to its limit in one minute of Redis’ clock', async () => {
    const take = async (limit: number, requests: 0 | 1) => {
      const [accepted, at, count] = (await redis.eval(
        lua('workspaces/rate-limits', 'take'),
        1,
        'rate',
        requests,
        1,
        limit,
      )) as [number, string, number]
      return { accepted, count, at: Number(at) }
    }
    let tries: { readonly accepted: number; readonly count: number; readonly at: number }[]
    do {
      await redis.flushall()
      tries = [
        await take(2, 0),
        await take(2, 1),
        await take(2, 1),
        await take(2, 1),
        await take(3, 0),
        await take(3, 1),
      ]
      // A minute that ends in the middle is tried again.
    } while (new Set(tries.map(({ at }) => Math.floor(at / 60_000))).size > 1)
    assert.deepEqual(
      tries.map(({ accepted, count }) => [accepted, count]),
      [
        [0, 0],
        [1, 1],
        [1, 2],
        [0, 2],
        [0, 2],
        [1, 3],
      ],
    )
    const ttl = await redis.ttl('rate')
    assert.ok(ttl > 60 && ttl <= 120, 'kept for longer than the minute')
    const at = Math.floor((await nowUs()) / 1000)
    const said = (await take(1, 0)).at
    assert.ok(said >= at && said <= (await nowUs()) / 1000, 'the time of Redis in milliseconds')
    await redis.set('rate', `${Math.floor(at / 60_000) - 1} 3`)
    assert.equal((await take(3, 0)).count, 0, 'what the last minute had counts no more')
  })

  it('[Q1] return the figures of a lane at one instant, and none of a lane that no replica has open', async () => {
    const scripts = laneScripts()
    const keys = laneKeys('lane')
    const run = (name: keyof typeof scripts, ...values: (string | number)[]) =>
      redis.eval(scripts[name].lua, keys.length, ...keys, ...values)
    assert.deepEqual(await run('status', 'one', 0), [''])
    const values = [100, 4, 5, 60_000_000, -1, '1 10 4 100 1 5']
    const places = ['a', 'in_flight', 30, '-', 'b', 'queued', 80, '-5 60000000']
    await run('join', 'one', 1, 'epoch', 0, LEASE_US, ...values, 1, 0, 0, ...places)
    await run('join', 'two', 1, 'epoch', 0, LEASE_US, ...values, 0, 0, 0)
    const figures = (await run('status', 'one', 0)) as (string | number)[]
    assert.deepEqual(figures.slice(0, 9), ['100', '4', '5', '60000000', '-1', 1, 30, 1, 2])
    assert.ok(Number(figures[9]) >= 5, 'the longest wait, in microseconds')
    assert.equal(await run('part', 'one', 2), 0, 'not as another incarnation')
    assert.equal(await run('part', 'one', 1), 1)
    assert.deepEqual(await run('status', 'one', 0), ['100', '4', '5', '60000000', '-1', 0, 0, 0, 1, '0', 0, 0, 0])
  })

  it('[Q1] give a lane the limits of the first replica, or of one that has newer ones, and renew a lease', async () => {
    const scripts = laneScripts()
    const keys = laneKeys('lane')
    const join = (replica: string, isNewest: 0 | 1, tokens: number) =>
      redis.eval(
        scripts.join.lua,
        keys.length,
        ...keys,
        replica,
        1,
        'e',
        0,
        LEASE_US,
        tokens,
        4,
        5,
        6,
        -1,
        '1 10 4 100 1 5',
        isNewest,
        0,
        0,
      )
    const limit = async () => ((await redis.eval(scripts.status.lua, keys.length, ...keys, 'one', 0)) as string[])[0]
    const before = await nowUs()
    await join('one', 0, 100)
    assert.equal(await limit(), '100')
    await join('two', 0, 200)
    assert.equal(await limit(), '100')
    await join('two', 1, 300)
    assert.equal(await limit(), '300')
    for (const replica of ['one', 'two']) {
      const ends = Number(await redis.zscore(keys[2] ?? '', `lease ${replica}`))
      assert.ok(ends >= before + LEASE_US && ends <= (await nowUs()) + LEASE_US, replica)
    }
  })
})
