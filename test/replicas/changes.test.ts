import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { redisChanges } from '../../src/cluster/changes/redis/changes.ts'
import { notifyReplicas } from '../../src/cluster/changes/redis/notify-replicas.ts'
import { systemClock } from '../../src/shared/system-clock.ts'
import { startRedis, type RedisServer } from '../support/redis-server.ts'
import { testReplica } from '../support/redis-replica.ts'
import { tcpProxy, type TcpProxy } from '../support/tcp-proxy.ts'
import { eventually } from '../support/waiting.ts'

describe('a change at one replica', () => {
  let server: RedisServer
  let proxy: TcpProxy
  let replicas: ReturnType<typeof reader>[]

  /** A replica that counts how often it has read its accounts. */
  function reader(url: string) {
    const replica = testReplica(url, { leaseMs: 2000 })
    const unreached: string[] = []
    const events = { unreached: (_change: string, names: readonly string[]) => void unreached.push(...names) }
    const changes = redisChanges(replica.link, systemClock, events)
    const it = { ...replica, changes, unreached, reads: 0, fails: false }
    changes.subscribe('accounts', async () => {
      if (it.fails) throw new Error('the database is away')
      it.reads += 1
    })
    return it
  }

  beforeEach(async () => {
    server = await startRedis()
    proxy = await tcpProxy(server.port)
    replicas = [reader(server.url), reader(server.url), reader(`redis://127.0.0.1:${proxy.port}`)]
    await eventually('all have joined and read once', () => replicas.every(({ reads }) => reads > 0))
  })
  afterEach(async () => {
    for (const replica of replicas) await replica.close()
    await proxy.close()
    await server.remove()
  })

  it('[K3] is applied by all others when the announcement resolves', async () => {
    const before = replicas.map(({ reads }) => reads)
    await replicas[0]!.changes.announce('accounts')
    assert.deepEqual(
      replicas.map(({ reads }, index) => reads > before[index]!),
      [true, true, true],
    )
  })

  it('[K3] names the replicas that did not answer, and they apply it when they are back', async () => {
    const [first, , apart] = replicas as [(typeof replicas)[0], unknown, (typeof replicas)[0]]
    proxy.blackHole(true)
    const before = apart.reads
    assert.deepEqual(await first.changes.announce('accounts'), [apart.name])
    assert.deepEqual(first.unreached, [apart.name])
    proxy.blackHole(false)
    await eventually('it has read again', () => apart.reads > before)
  })

  it('[K3] names a replica that could not read it, which tries again', async () => {
    const [first, failing] = replicas as [(typeof replicas)[0], (typeof replicas)[0]]
    failing.fails = true
    assert.deepEqual(await first.changes.announce('accounts'), [failing.name])
    const before = failing.reads
    failing.fails = false
    await eventually('it has read again', () => failing.reads > before)
  })

  it('[K3] reports that Redis is unreachable, and reaches the others afterwards', async () => {
    const [first, other] = replicas as [(typeof replicas)[0], (typeof replicas)[0]]
    await server.kill()
    assert.deepEqual(await first.changes.announce('accounts'), ['every other replica, because Redis does not answer'])
    const before = other.reads
    await server.start()
    await eventually('it has read again', () => other.reads > before)
  })

  it('[K3] is announced by a command on a machine without a replica, which lists the replicas that did not answer', async () => {
    const before = replicas.map(({ reads }) => reads)
    assert.deepEqual(await notifyReplicas(server.url, ['accounts', 'keys'], systemClock), [])
    assert.deepEqual(
      replicas.map(({ reads }, index) => reads > before[index]!),
      [true, true, true],
    )
    proxy.blackHole(true)
    assert.deepEqual(await notifyReplicas(server.url, ['accounts', 'keys'], systemClock), [replicas[2]!.name])
    proxy.blackHole(false)
    await server.kill()
    assert.deepEqual(await notifyReplicas(server.url, ['accounts'], systemClock), [
      'every other replica, because Redis does not answer',
    ])
  })

  it('[K3] does not wait for a replica that has left', async () => {
    await replicas.pop()?.close()
    assert.deepEqual(await replicas[0]!.changes.announce('accounts'), [])
  })
})
