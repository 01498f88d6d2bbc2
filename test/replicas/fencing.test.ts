import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { Redis } from 'ioredis'
import { laneKeys, laneScripts } from '../../src/queue/redis/lane-scripts.ts'
import type { LaneLimits } from '../../src/queue/lane.ts'
import { luaBeside } from '../../src/cluster/redis/script.ts'
import { systemClock } from '../../src/shared/system-clock.ts'
import { startRedis, type RedisServer } from '../support/redis-server.ts'
import { testReplica } from '../support/redis-replica.ts'
import { eventually } from '../support/waiting.ts'

const source = new URL('../../src/queue/redis/', import.meta.url).href
const limits: LaneLimits = { tokenBudget: 1000, maxConcurrentRequests: 4, maxQueueDepth: 100, maxWaitMs: 60_000 }

/** The scripts, but the messages that they send are lost. */
const silent = laneScripts((name) => {
  const lua = luaBeside(source, name)
  return name === 'outside' ? lua.replace('PUBLISH', 'ECHO').replace("'weir:told:' .. replica, ", '') : lua
})

describe('a replica whose state differs from what Redis has', () => {
  let server: RedisServer
  let redis: Redis
  let lanes = 0
  before(async () => {
    server = await startRedis()
    redis = new Redis(server.url)
  })
  after(async () => {
    redis.disconnect()
    await server.remove()
  })
  beforeEach(() => redis.flushall())

  it('[Q1] detects that it was suspended beyond its lease before it acts on an answer', async () => {
    let aheadMs = 0
    const clock = { ...systemClock, monotonic: () => performance.now() + aheadMs }
    const sleeper = testReplica(server.url, { clock })
    const { run } = sleeper.link
    const ran: string[] = []
    Object.assign(sleeper.link, {
      run(...call: Parameters<typeof run>) {
        ran.push(call[0].sha)
        return run(...call)
      },
    })
    const lane = `lane ${++lanes}`
    sleeper.admission.setLanes(new Map([[lane, limits]]))
    await eventually('it has joined', () => sleeper.admission.state() === 'joined')
    const before = ran.length
    const admitted = new Promise(
      (resolve) => void sleeper.admission.enter({ lane, workspace: 'acme', cost: 1 }, resolve),
    )
    // Its process sleeps between the question and the answer, for longer than the lease.
    aheadMs = 5000
    await admitted
    const { enter, join } = laneScripts()
    const since = ran.slice(before)
    assert.ok(since.indexOf(join.sha) > since.indexOf(enter.sha), 'it joined again before its caller heard')
    await sleeper.close()
  })

  it('[Q1] gets a grant whose message it missed with its next heartbeat', async () => {
    const replica = testReplica(server.url)
    const lane = `lane ${++lanes}`
    replica.admission.setLanes(new Map([[lane, { ...limits, maxConcurrentRequests: 1 }]]))
    await eventually('it has joined', () => replica.admission.state() === 'joined')
    let admitted = 0
    replica.admission.enter({ lane, workspace: 'acme', cost: 1 }, () => (admitted += 1))
    replica.admission.enter({ lane, workspace: 'acme', cost: 1 }, () => (admitted += 1))
    await eventually('one waits', async () => (await redis.zcard(laneKeys(lane)[1]!)) === 1)
    // The first gives its place back, and the message to the next is lost.
    const keys = laneKeys(lane)
    const { incarnation } = replica.link.membership()!
    await redis.eval(silent.leave.lua, keys.length, ...keys, replica.name, incarnation, `${replica.name}.1 acme`)
    assert.equal(await redis.zcard(keys[3]!), 1)
    await eventually('the other is admitted', () => admitted === 2)
    await replica.close()
  })

  it('[Q1] does not serve a grant that was withdrawn before its message arrived, and waits for the next', async () => {
    const replica = testReplica(server.url)
    const lane = `lane ${++lanes}`
    const keys = laneKeys(lane)
    const { acknowledge, leave } = laneScripts()
    const { run } = replica.link
    let takenBack: string | undefined
    Object.assign(replica.link, {
      async run(...call: Parameters<typeof run>) {
        const [{ sha }, , [name, incarnation, id]] = call
        // Redis gives up on the grant just before its replica takes it.
        if (sha === acknowledge.sha && takenBack === undefined) {
          takenBack = String(id)
          await redis.eval(leave.lua, keys.length, ...keys, name!, incarnation!, takenBack)
        }
        return run(...call)
      },
    })
    replica.admission.setLanes(new Map([[lane, { ...limits, maxConcurrentRequests: 1 }]]))
    await eventually('it has joined', () => replica.admission.state() === 'joined')
    const first = replica.admission.enter({ lane, workspace: 'acme', cost: 1 }, () => {})
    const placesWhenAdmitted = new Promise((resolve) => {
      replica.admission.enter({ lane, workspace: 'acme', cost: 1 }, () => resolve(redis.hgetall(keys[4]!)))
    })
    await eventually('one waits', async () => (await redis.zcard(keys[1]!)) === 1)
    first.leave()
    const places = (await placesWhenAdmitted) as Record<string, string>
    assert.deepEqual(Object.keys(places), [takenBack])
    assert.match(places[takenBack ?? ''] ?? '', /^in_flight /)
    await replica.close()
  })

  it('[Q1] acknowledges grants that arrive together in one call, and serves none if one was withdrawn', async () => {
    const replica = testReplica(server.url)
    const lane = `lane ${++lanes}`
    const keys = laneKeys(lane)
    const { acknowledge, leave } = laneScripts()
    const { run } = replica.link
    const calls: { readonly ids: readonly unknown[]; readonly served: number }[] = []
    let served = 0
    Object.assign(replica.link, {
      async run(...call: Parameters<typeof run>) {
        const [{ sha }, , [name, incarnation, ...ids]] = call
        if (sha === acknowledge.sha) {
          calls.push({ ids, served })
          if (calls.length === 1) await redis.eval(leave.lua, keys.length, ...keys, name!, incarnation!, ids.at(-1)!)
        }
        return run(...call)
      },
    })
    replica.admission.setLanes(new Map([[lane, { ...limits, maxConcurrentRequests: 1 }]]))
    await eventually('it has joined', () => replica.admission.state() === 'joined')
    for (let caller = 0; caller < 3; caller += 1)
      replica.admission.enter({ lane, workspace: 'acme', cost: 1 }, () => (served += 1))
    await eventually('two wait', async () => (await redis.zcard(keys[1]!)) === 2)
    // Both are granted without a message, so the next heartbeat lists both.
    const { incarnation } = replica.link.membership()!
    const wider = [1000, 3, 100, 60_000_000, -1, '1 100 3 1000 1 100']
    await redis.eval(silent.limits.lua, keys.length, ...keys, replica.name, incarnation, ...wider)
    await eventually('all are served', () => served === 3)
    assert.deepEqual(calls[0], { ids: [`${replica.name}.2 acme`, `${replica.name}.3 acme`], served: 1 })
    assert.equal(calls[1]?.served, 1, 'no request was served before it called again')
    await replica.close()
  })

  it('[Q1] is ignored as an earlier incarnation', async () => {
    const replica = testReplica(server.url)
    const lane = `lane ${++lanes}`
    replica.admission.setLanes(new Map([[lane, limits]]))
    await eventually('it has joined', () => replica.admission.state() === 'joined')
    const keys = laneKeys(lane)
    const { enter, leave } = laneScripts()
    const answer = await redis.eval(enter.lua, keys.length, ...keys, replica.name, 0, 'ghost', 1)
    assert.deepEqual(answer, ['unknown'])
    assert.equal(await redis.eval(leave.lua, keys.length, ...keys, replica.name, 0, 'ghost'), 0)
    assert.equal(await redis.hlen(keys[4]!), 0)
    await replica.close()
  })

  it('[Q1] gets no capacity that was promised to another, until it is returned', async () => {
    const [one, other] = [testReplica(server.url), testReplica(server.url)]
    const lane = `lane ${++lanes}`
    for (const { admission } of [one, other]) admission.setLanes(new Map([[lane, limits]]))
    await eventually('both have a promise', async () => {
      const fields = await redis.hgetall(laneKeys(lane)[0]!)
      return [one, other].every(({ name }) => fields[`promise ${name}`] === '2 500')
    })
    // The other one cannot answer, so what it was promised stays its own.
    const keys = laneKeys(lane)
    const { enter } = laneScripts()
    const { incarnation } = one.link.membership()!
    const ask = (id: string) => redis.eval(enter.lua, keys.length, ...keys, one.name, incarnation, id, 1)
    const answers = [await ask('a'), await ask('b'), await ask('c')] as string[][]
    assert.deepEqual(
      answers.map(([kind]) => kind),
      ['admitted', 'admitted', 'queued'],
    )
    await eventually('it was given back', async () => (await redis.zcard(keys[1]!)) === 0)
    for (const replica of [one, other]) await replica.close()
  })

  it('[Q1] waits one lease in a new epoch before any request is admitted', async () => {
    const startedAt = performance.now()
    const replica = testReplica(server.url)
    const lane = `lane ${++lanes}`
    replica.admission.setLanes(new Map([[lane, limits]]))
    await new Promise((resolve) => void replica.admission.enter({ lane, workspace: 'acme', cost: 1 }, resolve))
    assert.ok(performance.now() - startedAt >= 950)
    await replica.close()
  })
})
