import assert from 'node:assert/strict'
import { Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { openLink, reconnectMs, type LinkFollower } from '../../src/cluster/redis/link.ts'
import { script } from '../../src/cluster/redis/script.ts'
import { HELD, scriptedRedis, type ReceivedCommand, type Reply } from '../support/scripted-redis.ts'
import { eventually } from '../support/waiting.ts'
import { turn } from '../support/hand-clock.ts'
import { manualClock } from '../support/manual-clock.ts'

const [LEASE_MS, HEARTBEAT_MS] = [1000, 200]
const ours = script("return 'ours'")
const later = script("return 'later'")

/** A replica's link to a Redis that the test plays. `life` answers its heartbeats. */
async function stage(t: TestContext) {
  const { clock, alarms, advance } = manualClock()
  const log: string[] = []
  const heartbeats: ReceivedCommand[] = []
  const state = {
    life: ['epoch-1', 0, 3, 0] as Reply | typeof HELD,
    others: undefined as Reply | typeof HELD | undefined,
    ping: undefined as typeof HELD | undefined,
    isSilent: false,
    silentSocket: undefined as Socket | undefined,
  }
  const redis = await scriptedRedis((command) => {
    const isHeartbeat = command.name === 'evalsha' && command.values.includes('weir:{replicas}')
    if (isHeartbeat) heartbeats.push(command)
    if (state.isSilent || command.socket === state.silentSocket) return HELD
    if (command.name === 'ping') return state.ping
    return isHeartbeat ? state.life : command.name === 'evalsha' ? state.others : undefined
  })
  const follower: LinkFollower = {
    scripts: [ours],
    channels: ['ours'],
    joined: ({ epoch, incarnation }) => void log.push(`joined ${epoch} ${incarnation}`),
    lost: () => void log.push('lost'),
    heartbeat: () => void log.push('heartbeat'),
    receive: (channel, message) => void log.push(`received ${channel} ${message}`),
  }
  const link = openLink({
    url: redis.url,
    replica: 'one',
    clock,
    leaseMs: LEASE_MS,
    heartbeatMs: HEARTBEAT_MS,
    about: () => ({ name: 'one' }),
    events: {
      joined: (epoch, replicas) => void log.push(`event joined ${epoch} ${replicas}`),
      lost: (reason) => void log.push(`event lost ${reason}`),
      drainRequested: () => void log.push('event drain'),
    },
  })
  link.follow(follower)
  t.after(async () => {
    state.isSilent = false
    state.life = ['epoch-1', 0, 3, 0]
    await link.close()
    await redis.close()
  })
  return {
    link,
    redis,
    clock,
    alarms,
    advance,
    log,
    heartbeats,
    state,
    follower,
    joined: () => eventually('it has joined', () => link.membership() !== undefined),
    /** A heartbeat is sent, and not answered. */
    async heldHeartbeat(afterMs = HEARTBEAT_MS): Promise<ReceivedCommand> {
      state.life = HELD
      const before = heartbeats.length
      advance(afterMs)
      await eventually('a heartbeat is sent', () => heartbeats.length > before)
      return heartbeats.at(-1)!
    },
  }
}

describe('the link of a replica to Redis', () => {
  it('[Q1] joins with its scripts loaded and its channels subscribed', async (t) => {
    const { link, redis, clock, joined, log, heartbeats } = await stage(t)
    assert.equal(link.replicas(), 1, 'as long as it knows of no other')
    const sinceMs = clock.monotonic()
    assert.deepEqual(link.proven(), { sinceMs, untilMs: sinceMs + LEASE_MS }, 'callers wait for the first connection')
    await joined()
    const before = redis.received.slice(0, redis.received.indexOf(heartbeats[0]!))
    assert.ok(before.some(({ name, values }) => name === 'script' && values[1] === ours.lua))
    assert.ok(before.some(({ name, values }) => name === 'subscribe' && values.join() === 'ours'))
    assert.ok(before.some(({ name, values }) => name === 'info' && values.join() === 'server'))
    const named = before.filter(({ name, values }) => name === 'client' && values.join() === 'setname,weir-one')
    assert.equal(named.length, 2, 'both connections have the name of the replica')
    assert.deepEqual(heartbeats[0]?.values.slice(1), [
      '2',
      'weir:{replicas}',
      'weir:{replicas}:leases',
      'one',
      'server-1',
      '1000000',
      '{"name":"one"}',
    ])
    assert.deepEqual(log, ['event joined epoch-1 3', 'joined epoch-1 1'])
    assert.equal(link.replicas(), 3)
  })

  it('[Q1] counts its lease from when it sends a heartbeat, not from the answer', async (t) => {
    const { link, clock, redis, joined, heldHeartbeat: heldBeat, advance } = await stage(t)
    await joined()
    const heartbeat = await heldBeat()
    const sentAtMs = clock.monotonic()
    advance(100)
    redis.reply(heartbeat, ['epoch-1', 0, 5, 0])
    await eventually('it is answered', () => link.replicas() === 5)
    assert.equal(link.proven().untilMs, sentAtMs + LEASE_MS)
    assert.ok(link.proven().sinceMs < sentAtMs)
  })

  it('[Q1] starts a new proven period after a gap as long as the lease', async (t) => {
    const { link, clock, redis, joined, heldHeartbeat: heldBeat } = await stage(t)
    await joined()
    const { sinceMs, untilMs } = link.proven()
    let heartbeat = await heldBeat()
    redis.reply(heartbeat, ['epoch-1', 0, 4, 0])
    await eventually('it is answered', () => link.replicas() === 4)
    assert.deepEqual(link.proven(), { sinceMs, untilMs: untilMs + HEARTBEAT_MS })
    // Asleep until the lease is over, to the millisecond.
    heartbeat = await heldBeat(LEASE_MS)
    redis.reply(heartbeat, ['epoch-1', 0, 5, 0])
    await eventually('it is answered', () => link.replicas() === 5)
    assert.deepEqual(link.proven(), { sinceMs: clock.monotonic(), untilMs: clock.monotonic() + LEASE_MS })
  })

  it('[Q1] drops the connection when Redis has not answered for more than half of the lease, and reports why', async (t) => {
    const { link, redis, joined, heldHeartbeat: heldBeat, advance, log, state } = await stage(t)
    await joined()
    state.isSilent = true
    await heldBeat()
    const connections = new Set(redis.sockets)
    // It asks each time, and waits for the answers that may lie in its sockets.
    advance(LEASE_MS / 2)
    await eventually('the next heartbeat is sent', () => log.filter((it) => it === 'heartbeat').length === 2)
    for (let turns = 0; turns < 4; turns += 1) await turn()
    assert.notEqual(link.membership(), undefined, 'not after exactly half of it')
    log.length = 0
    advance(HEARTBEAT_MS)
    await eventually('it is given up', () => link.membership() === undefined)
    assert.deepEqual(
      log.filter((it) => it !== 'heartbeat'),
      ['lost', 'event lost Redis does not answer'],
    )
    state.isSilent = false
    state.life = ['epoch-1', 0, 3, 0]
    await joined()
    assert.ok([...connections].every((it) => it.destroyed))
  })

  it('[Q1] drops its connections when only the one for messages is silent', async (t) => {
    const { link, redis, clock, joined, advance, log, state } = await stage(t)
    await joined()
    state.ping = HELD
    const connections = new Set(redis.sockets)
    for (let beats = 1; beats <= 4; beats += 1) {
      advance(HEARTBEAT_MS)
      await eventually('the heartbeat is answered', () => link.proven().untilMs === clock.monotonic() + LEASE_MS)
    }
    await eventually('they are given up', () => [...connections].every((it) => it.destroyed))
    assert.ok(log.includes('event lost Redis does not answer'))
  })

  it('[Q1] starts a new membership when the epoch changes, and keeps it otherwise', async (t) => {
    const { link, joined, advance, log, state, heartbeats } = await stage(t)
    await joined()
    advance(HEARTBEAT_MS)
    await eventually('a heartbeat is sent', () => heartbeats.length === 2)
    state.life = ['epoch-2', 250_000, 3, 1]
    advance(HEARTBEAT_MS)
    await eventually('it is in the next epoch', () => link.membership()?.epoch === 'epoch-2')
    assert.deepEqual(log.filter((it) => it !== 'heartbeat').slice(2), [
      'event drain',
      'lost',
      'event joined epoch-2 3',
      'joined epoch-2 1',
    ])
  })

  it('knows how long a new epoch admits nothing', async (t) => {
    const { link, joined, state, clock } = await stage(t)
    state.life = ['epoch-1', 250_000, 3, 0]
    await joined()
    assert.equal(link.membership()?.quietUntilMs, clock.monotonic() + 250)
  })

  it('[Q1] joins as a new incarnation after a disconnect, and ignores answers from before', async (t) => {
    const { link, redis, joined, heldHeartbeat: heldBeat, log, state } = await stage(t)
    await joined()
    await heldBeat()
    state.life = ['epoch-1', 0, 7, 0]
    redis.cut()
    await eventually('it is lost', () => log.includes('lost'))
    await joined()
    assert.equal(link.membership()?.incarnation, 2)
    assert.equal(redis.received.filter(({ name }) => name === 'subscribe').length, 2, 'once with each connection')
    assert.equal(log.filter((it) => it.startsWith('event lost')).length, 1)
  })

  it('subscribes again when only its connection for messages was lost while a heartbeat was unanswered', async (t) => {
    const { link, redis, joined, heldHeartbeat: heldBeat, log, state, follower } = await stage(t)
    await joined()
    const heartbeat = await heldBeat()
    state.life = ['epoch-1', 0, 7, 0]
    const subscriptions = () => redis.received.filter(({ name }) => name === 'subscribe')
    link.follow({ ...follower, joined() {}, lost: () => redis.reply(heartbeat, ['epoch-1', 0, 3, 0]) })
    subscriptions()[0]?.socket.destroy()
    await eventually('it has subscribed again', () => subscriptions().length === 2)
    await eventually('it has joined again', () => link.replicas() === 7)
    assert.equal(link.membership()?.incarnation, 2)
    assert.deepEqual(
      log.filter((it) => it.startsWith('joined')),
      ['joined epoch-1 1', 'joined epoch-1 2'],
    )
  })

  it('ignores an answer to the connection before while it subscribes again', async (t) => {
    const { redis, joined, heldHeartbeat: heldBeat, log, state } = await stage(t)
    await joined()
    const heartbeat = await heldBeat()
    state.life = ['epoch-1', 0, 3, 0]
    state.silentSocket = heartbeat.socket
    const before = redis.received.length
    redis.received.find(({ name }) => name === 'subscribe')?.socket.destroy()
    const asked = () => redis.received.slice(before).filter(({ socket }) => socket === heartbeat.socket)
    await eventually('it joins again', () => asked().length === 3)
    redis.reply(heartbeat, ['epoch-1', 0, 3, 0])
    state.silentSocket = undefined
    for (const command of asked()) redis.reply(command, command.name === 'info' ? 'run_id:server-1' : 'OK')
    await joined()
    const memberships = log.filter((it) => it.startsWith('joined'))
    assert.deepEqual(memberships, ['joined epoch-1 1', 'joined epoch-1 2'])
  })

  it('never sends a command later that was called without a connection, or whose connection broke', async (t) => {
    const { link, redis, joined, log, state } = await stage(t)
    await assert.rejects(link.run(ours, ['early'], []))
    await joined()
    state.others = HELD
    const asked = assert.rejects(link.run(ours, ['late'], []))
    await eventually('it is sent', () => redis.received.some(({ values }) => values.includes('late')))
    redis.cut()
    await asked
    await eventually('it is lost', () => log.includes('lost'))
    await joined()
    const sent = (key: string): number => redis.received.filter(({ values }) => values.includes(key)).length
    assert.deepEqual([sent('early'), sent('late')], [0, 1])
  })

  it('starts no membership with an answer that arrives while it closes', async (t) => {
    const { link, redis, joined, heldHeartbeat: heldBeat, log } = await stage(t)
    await joined()
    const heartbeat = await heldBeat()
    log.length = 0
    const closed = link.close()
    redis.reply(heartbeat, ['epoch-2', 0, 3, 1])
    await closed
    assert.deepEqual(
      log.filter((it) => it.startsWith('event') || it.startsWith('joined')),
      [],
    )
  })

  it('gives each of its connections two seconds to be made', async (t) => {
    const { mock } = t.mock.method(Socket.prototype, 'setTimeout')
    await stage(t)
    await eventually('both are made', () => mock.callCount() >= 2)
    const limits = mock.calls.map(({ arguments: [ms] }) => ms).filter((ms) => ms !== 0)
    assert.deepEqual(limits, [2000, 2000])
  })

  it('reconnects at once, and at least twice a second however long Redis is unreachable', () => {
    assert.deepEqual([1, 2, 25, 26, 1000].map(reconnectMs), [20, 40, 500, 500, 500])
  })

  it('drops the connection when Redis has lost its scripts', async (t) => {
    const { link, joined, log, state } = await stage(t)
    await joined()
    state.others = new Error('NOSCRIPT No matching script.')
    await assert.rejects(link.run(ours, ['key'], []), /NOSCRIPT/)
    assert.ok(log.includes('event lost Redis lost its scripts'))
    state.others = undefined
    await joined()
  })

  it('keeps its connection when a script fails for another reason', async (t) => {
    const { link, joined, state } = await stage(t)
    await joined()
    state.others = new Error('ERR it failed')
    await assert.rejects(link.run(ours, ['key'], [1, 'two']), /it failed/)
    assert.notEqual(link.membership(), undefined)
  })

  it('passes a message to the followers of its channel', async (t) => {
    const { link, redis, joined, log } = await stage(t)
    await joined()
    const others: string[] = []
    link.follow({
      scripts: [later],
      channels: [],
      joined: ({ epoch }) => void others.push(`joined ${epoch}`),
      lost() {},
      heartbeat() {},
      receive: () => void others.push('received'),
    })
    assert.deepEqual(others, ['joined epoch-1'], 'one that follows later has joined at once')
    redis.publish('ours', 'a message')
    await eventually('it is received', () => log.includes('received ours a message'))
    assert.deepEqual(others, ['joined epoch-1'])
    await eventually('its script is loaded', () => redis.received.some(({ values }) => values[1] === later.lua))
  })

  it('gives up its lease when it closes, and reports no loss', async (t) => {
    const { link, redis, joined, log, alarms } = await stage(t)
    await joined()
    log.length = 0
    await link.close()
    const [removed, forgotten] = redis.received.filter(({ name }) => name === 'zrem' || name === 'hdel')
    assert.deepEqual(removed?.values, ['weir:{replicas}:leases', 'one'])
    assert.deepEqual(forgotten?.values, ['weir:{replicas}', 'replica one', 'drain one'])
    assert.equal(alarms.size, 0)
    await eventually('both connections have ended', () => redis.sockets.size === 0)
    assert.ok(!log.some((it) => it.startsWith('event lost')))
  })

  it('closes half a second later if Redis does not answer', async (t) => {
    const { link, joined, state, advance } = await stage(t)
    await joined()
    state.isSilent = true
    const closed = link.close().then(() => 'closed')
    advance(499)
    assert.equal(await Promise.race([closed, turn()]), undefined)
    advance(1)
    assert.equal(await closed, 'closed')
  })

  it('[Q1] does not count a reset connection as proof: Redis may serve other replicas', async (t) => {
    const { link, redis, joined, advance, log, state } = await stage(t)
    await joined()
    const { untilMs } = link.proven()
    advance(LEASE_MS - 1)
    state.isSilent = true
    redis.sockets.forEach((socket) => socket.resetAndDestroy())
    await eventually('it is lost', () => log.includes('lost'))
    assert.ok(log.includes('event lost read ECONNRESET'), log.join())
    await eventually('it tries again', () => redis.sockets.size === 2)
    assert.equal(link.proven().untilMs, untilMs)
    state.isSilent = false
    redis.cut()
    await joined()
  })

  it('[Q1] counts a host that refuses connections as proof that Redis serves no other replica', async (t) => {
    const { link, redis, joined, clock, advance } = await stage(t)
    await joined()
    const { sinceMs } = link.proven()
    advance(LEASE_MS - 1)
    await redis.close()
    await eventually('it is refused', () => link.proven().untilMs === clock.monotonic() + LEASE_MS)
    assert.equal(link.proven().sinceMs, sinceMs)
  })
})
