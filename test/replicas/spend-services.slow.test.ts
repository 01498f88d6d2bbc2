import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { Client } from 'pg'
import { stageConfig } from '../support/chat-stage.ts'
import { startPostgres, type PostgresServer } from '../support/postgres-server.ts'
import { startRedis, type RedisServer } from '../support/redis-server.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { eventually } from '../support/waiting.ts'
import { weirProcess, type WeirProcess } from '../support/weir-process.ts'

/** One cent per output token. */
const pricing = { input_per_million: '0', output_per_million: '10000' }
const CALLERS = 64

/** Whole services in processes of their own, on one PostgreSQL and one Redis. */
describe('a hard spend limit of four services', () => {
  let redis: RedisServer
  let postgres: PostgresServer
  let engine: ScriptedEngine
  let database: string
  let services: WeirProcess[] = []
  const operatorToken = 'operator-token-of-the-test'

  before(async () => {
    redis = await startRedis()
    postgres = await startPostgres()
    engine = await scriptedEngine()
    engine.script = { tokens: ['a', 'b', 'c'] }
    const limits = { max_concurrent_requests: 100, max_queue_depth: 200 }
    database = await postgres.createDatabase()
    const shared = { coordination: redis.url, database, operator_token: operatorToken }
    const config = stageConfig([engine.url], { model: { pricing }, limits, config: shared })
    // The first one makes the workspace and its key.
    services = [await weirProcess(config)]
    services.push(...(await Promise.all([weirProcess(config), weirProcess(config), weirProcess(config)])))
    await eventually('all have joined', async () => (await Promise.all(services.map(isJoined))).every(Boolean), 30_000)
  })
  after(async () => {
    for (const service of services) await service.remove()
    await engine.close()
    await postgres.remove()
    await redis.remove()
  })

  async function isJoined({ base }: WeirProcess): Promise<boolean> {
    const response = await fetch(base.replace('/api/v1', '/readyz'))
    return response.ok && ((await response.json()) as { coordination: string }).coordination === 'joined'
  }

  async function setLimit(amount: string): Promise<void> {
    const response = await fetch(`${services[0]!.adminUrl}/admin/v1/workspaces/default`, {
      method: 'PATCH',
      headers: { authorization: `Bearer ${operatorToken}`, 'content-type': 'application/json' },
      body: JSON.stringify({ spend_limit: amount }),
    })
    assert.equal(response.status, 200)
  }

  /** May cost `tokens` cents, and costs three at most. */
  async function chat(
    service: number,
    tokens: number,
  ): Promise<{ readonly status: number; readonly used: string | null }> {
    const response = await fetch(`${services[service % services.length]!.base}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${services[0]!.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'meta/test-8b', max_tokens: tokens, messages: [{ role: 'user', content: 'Hi' }] }),
    })
    await response.arrayBuffer()
    return { status: response.status, used: response.headers.get('x-spend-used') }
  }

  async function centsInLedger(): Promise<bigint> {
    const client = new Client(database)
    await client.connect()
    try {
      const { rows } = await client.query<{ sum: string | null }>('SELECT sum(amount_pico_aud) FROM ledger')
      return BigInt(rows[0]?.sum ?? 0) / 10_000_000_000n
    } finally {
      await client.end()
    }
  }

  it('[S1] is not overdrawn by 64 parallel callers, and all of it can be spent', async () => {
    await setLimit('3.00')
    let served = 0
    async function live(caller: number): Promise<void> {
      for (let request = 0; ; request += 1) {
        const { status } = await chat(caller + request, 5)
        if (status === 402) return
        // A machine that is busy may lose its connection to Redis for a moment.
        if (status === 503) continue
        assert.equal(status, 200)
        served += 1
      }
    }
    await Promise.all(Array.from({ length: CALLERS }, (_, caller) => live(caller)))
    const spent = BigInt(served) * 3n
    assert.ok(spent <= 300n, `${spent} cents are spent`)
    await eventually('the ledger has every row', async () => (await centsInLedger()) === spent)
    // Nothing runs any more. Requests of five cents are served until less than that is left, then requests of three.
    for (let left = 300n - spent; left >= 3n; left -= 3n) {
      const tokens = left >= 5n ? 5 : 3
      await eventually('it is served', async () => (await chat(Number(left), tokens)).status === 200)
    }
    for (const index of services.keys()) assert.notEqual((await chat(index, 3)).status, 200)
    await eventually('every service knows', async () => {
      const used = await Promise.all([...services.keys()].map(async (index) => (await chat(index, 3)).used))
      return used.every((it) => it === '3.00')
    })
    await eventually('the ledger has every row', async () => (await centsInLedger()) === 300n)
  })
})
