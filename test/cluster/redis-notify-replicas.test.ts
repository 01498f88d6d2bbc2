import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { announceScript } from '../../src/cluster/changes/redis/announcement.ts'
import { notifyReplicas } from '../../src/cluster/changes/redis/notify-replicas.ts'
import type { AlarmClock } from '../../src/shared/clock.ts'
import { HELD, scriptedRedis, type Reply } from '../support/scripted-redis.ts'
import { eventually, within } from '../support/waiting.ts'

/** A Redis that names these replicas for every change, and a command's clock whose timers the test fires. */
async function stage(t: TestContext, replicas: Reply | typeof HELD) {
  const alarms = new Set<{ readonly ms: number; ring(): void }>()
  const clock: AlarmClock = {
    now: () => 0,
    monotonic: () => 0,
    after(ms, ring) {
      const alarm = { ms, ring }
      alarms.add(alarm)
      return () => alarms.delete(alarm)
    },
  }
  const redis = await scriptedRedis(({ name }) => (name === 'eval' ? replicas : undefined))
  t.after(() => redis.close())
  return { redis, clock, alarms, asked: () => redis.received.filter(({ name }) => name === 'eval') }
}

describe('a command that notifies replicas of its changes', () => {
  it('waits until each replica has answered for each change, and leaves no connection open', async (t) => {
    const { redis, clock, alarms, asked } = await stage(t, [3, ['one', 'two']])
    const unreached = notifyReplicas(redis.url, ['keys', 'prices'], clock)
    await eventually('both are announced', () => asked().length === 2)
    const [first] = asked()
    assert.equal(first?.values[0], announceScript.lua)
    const [name, id, change] = first?.values.at(-1)?.split('\n') ?? []
    assert.match(name ?? '', /^command-[0-9a-f]{12}$/)
    assert.deepEqual([id, change], ['keys', 'keys'])
    assert.deepEqual(first?.values.slice(1, -1), ['2', 'weir:{replicas}:versions', 'weir:{replicas}:leases', 'keys'])
    const subscribed = redis.received.find((it) => it.name === 'subscribe')
    assert.deepEqual(subscribed?.values, [`weir:changes:${name}`])
    for (const message of ['one\nkeys', 'one\nprices', 'two\nprices']) redis.publish(`weir:changes:${name}`, message)
    await eventually('prices are done', () => alarms.size === 1)
    redis.publish(`weir:changes:${name}`, 'two\nkeys')
    assert.deepEqual(await within(10_000, 'all have answered', unreached), [])
    assert.equal(alarms.size, 0)
    await eventually('both connections have ended', () => redis.sockets.size === 0)
  })

  it('names the replicas that have not answered within a second, each once', async (t) => {
    const { redis, clock, alarms, asked } = await stage(t, [3, ['one', 'two']])
    const unreached = notifyReplicas(redis.url, ['keys', 'prices'], clock)
    await eventually('both are announced', () => asked().length === 2)
    const name = asked()[0]?.values.at(-1)?.split('\n')[0] ?? ''
    redis.publish(`weir:changes:${name}`, 'one\nkeys')
    redis.publish(`weir:changes:${name}`, 'one\nprices')
    redis.publish(`weir:changes:${name}`, 'two\nprices')
    // The last message is read behind the others.
    await eventually('prices are done', () => alarms.size === 1)
    const [alarm] = alarms
    assert.equal(alarm?.ms, 1000)
    alarm?.ring()
    assert.deepEqual(await within(10_000, 'it gives up', unreached), ['two'])
  })

  it('names every other replica if there is no Redis, or if Redis does not answer', async (t) => {
    const { redis, clock } = await stage(t, new Error('ERR it failed'))
    const all = ['every other replica, because Redis does not answer']
    assert.deepEqual(await notifyReplicas(redis.url, ['keys'], clock), all)
    await eventually('both connections have ended', () => redis.sockets.size === 0)
    await redis.close()
    assert.deepEqual(await within(10_000, 'it gives up', notifyReplicas(redis.url, ['keys'], clock)), all)
  })
})
