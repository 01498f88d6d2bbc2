import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { Redis } from 'ioredis'
import { stageConfig } from '../support/chat-stage.ts'
import { startRedis, type RedisServer } from '../support/redis-server.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { eventually, gate } from '../support/waiting.ts'
import { weirProcess, type WeirProcess } from '../support/weir-process.ts'

const CONCURRENCY = 3
/** The lease of a replica. */
const LEASE_MS = 5000
/** For a machine that is busy with something else. */
const SLACK_MS = 3000

/** Whole services in processes of their own, in front of one engine. Each has its own database. */
describe('several services on one Redis', () => {
  let redis: RedisServer
  let engine: ScriptedEngine
  let services: WeirProcess[] = []

  before(async () => {
    redis = await startRedis()
    engine = await scriptedEngine()
    const limits = { max_concurrent_requests: CONCURRENCY, max_queue_depth: 200, max_wait_ms: 60_000 }
    const config = stageConfig([engine.url], { limits, config: { coordination: redis.url } })
    services = await Promise.all([weirProcess(config), weirProcess(config)])
    await eventually('both have joined', async () => (await states()) === 'joined,joined', 20_000)
  })
  after(async () => {
    for (const service of services) await service.remove()
    await engine.close()
    await redis.remove()
  })

  async function states(): Promise<string> {
    const found = services.map(async ({ base }) => {
      const response = await fetch(base.replace('/api/v1', '/readyz'))
      return response.ok ? ((await response.json()) as { coordination: string }).coordination : `${response.status}`
    })
    return (await Promise.all(found)).join()
  }

  async function lane(service: WeirProcess): Promise<string> {
    const response = await fetch(`${service.base}/queue/status`, {
      headers: { authorization: `Bearer ${service.key}` },
    })
    const { data } = (await response.json()) as { data: { in_flight_requests: number; queue_depth: number }[] }
    return `${data[0]?.in_flight_requests} in flight, ${data[0]?.queue_depth} queued`
  }

  /** How many services may serve something without Redis. */
  async function promises(): Promise<number> {
    const client = new Redis(redis.url)
    try {
      const [key = ''] = await client.keys('*}:lane')
      const fields = Object.entries(await client.hgetall(key))
      return fields.filter(([field, value]) => field.startsWith('promise ') && !value.startsWith('0 ')).length
    } finally {
      client.disconnect()
    }
  }

  const ask = async (service: WeirProcess): Promise<number> => {
    const response = await service.chat({ max_tokens: 4 })
    await response.text()
    return response.status
  }

  it('[Q1][Q8] share the concurrency of a lane, and each shows the whole', async () => {
    const [one, other] = services as [WeirProcess, WeirProcess]
    const go = gate()
    engine.script = { tokens: ['a', 'b'], hold: { afterTokens: 0, until: go.opened } }
    const answers = Array.from({ length: 40 }, (_, index) => ask(services[index % 2]!))
    const busy = `${CONCURRENCY} in flight, ${40 - CONCURRENCY} queued`
    await eventually('both show all of them', async () => (await lane(one)) === busy && (await lane(other)) === busy)
    assert.equal(engine.running, CONCURRENCY)
    engine.script = { tokens: ['a', 'b'] }
    go.open()
    assert.deepEqual(new Set(await Promise.all(answers)), new Set([200]))
    assert.equal(engine.maxRunning, CONCURRENCY)
    await eventually('all is free', async () => (await lane(one)) === '0 in flight, 0 queued')
  })

  it('[Q1] free what a killed one held, within its lease and a second', async () => {
    const [killed, alive] = services as [WeirProcess, WeirProcess]
    const go = gate()
    engine.script = { tokens: ['a'], hold: { afterTokens: 0, until: go.opened } }
    const lost = Array.from({ length: CONCURRENCY + 5 }, () => ask(killed).catch(() => 0))
    const busy = `${CONCURRENCY} in flight, 5 queued`
    await eventually('it holds everything', async () => (await lane(alive)) === busy && engine.running === CONCURRENCY)
    engine.script = { tokens: ['a'] }
    const waiting = ask(alive)
    await eventually('one of the other waits', async () => (await lane(alive)) === `${CONCURRENCY} in flight, 6 queued`)
    killed.signal('SIGKILL')
    const killedAt = performance.now()
    assert.equal(await waiting, 200)
    const tookMs = performance.now() - killedAt
    assert.ok(tookMs < LEASE_MS + 1000 + SLACK_MS, `${tookMs} ms`)
    go.open()
    await Promise.all(lost)
    await eventually('all is free', async () => (await lane(alive)) === '0 in flight, 0 queued')
    await killed.ended()
    await killed.start()
    await eventually('it is back', async () => (await states()) === 'joined,joined', 20_000)
  })

  it('[Q1] ignore a process that was suspended until it has joined again', async () => {
    const [asleep, alive] = services as [WeirProcess, WeirProcess]
    const go = gate()
    engine.script = { tokens: ['a'], hold: { afterTokens: 0, until: go.opened } }
    const slow = Array.from({ length: CONCURRENCY + 2 }, () => ask(asleep))
    const busy = `${CONCURRENCY} in flight, 2 queued`
    await eventually('it holds everything', async () => (await lane(alive)) === busy && engine.running === CONCURRENCY)
    asleep.signal('SIGSTOP')
    engine.script = { tokens: ['a'] }
    assert.equal(await ask(alive), 200)
    await eventually('it was given up', async () => (await lane(alive)) === '0 in flight, 0 queued')
    asleep.signal('SIGCONT')
    await eventually('it says what it has', async () => (await lane(alive)) === busy)
    go.open()
    assert.deepEqual(new Set(await Promise.all(slow)), new Set([200]))
    await eventually('all is free', async () => (await lane(alive)) === '0 in flight, 0 queued')
  })

  it('report that Redis is unreachable, and serve their allotments', async () => {
    engine.script = { tokens: ['a'] }
    await eventually('both were promised a part', async () => (await promises()) === 2)
    await lane(services[0]!)
    await redis.kill()
    await eventually('both notice', async () => (await states()) === 'apart,apart')
    assert.equal(await ask(services[0]!), 200)
    await redis.start()
    await eventually('both are back', async () => (await states()) === 'joined,joined', 20_000)
    assert.equal(await ask(services[1]!), 200)
  })
})
