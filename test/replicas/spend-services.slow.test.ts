import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { Client } from 'pg'
import { stageConfig } from '../support/chat-stage.ts'
import { startPostgres, type PostgresServer } from '../support/postgres-server.ts'
import { startRedis, type RedisServer } from '../support/redis-server.ts'
import { roomInThisMinute } from '../support/minute.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { eventually } from '../support/waiting.ts'
import { weirProcess, type WeirProcess } from '../support/weir-process.ts'

/** One cent per output token. */
const pricing = { input_per_million: '0', output_per_million: '10000' }
const CALLERS = 64

/** Whole services in processes of their own, on one PostgreSQL and one Redis. */
describe('the limits of four services', () => {
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

  async function asOperator<T>(method: string, path: string, body: object): Promise<T> {
    const response = await fetch(`${services[0]!.adminUrl}/admin/v1/${path}`, {
      method,
      headers: { authorization: `Bearer ${operatorToken}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    assert.ok(response.ok, await response.clone().text())
    return (await response.json()) as T
  }
  const setLimit = (amount: string) => asOperator('PATCH', 'workspaces/default', { spend_limit: amount })

  /** May cost `tokens` cents, and costs three at most. */
  async function chat(service: number, tokens: number, key = services[0]!.key) {
    const response = await fetch(`${services[service % services.length]!.base}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'meta/test-8b', max_tokens: tokens, messages: [{ role: 'user', content: 'Hi' }] }),
    })
    const { usage } = (await response.json()) as { usage?: { total_tokens: number } }
    return { status: response.status, used: response.headers.get('x-spend-used'), tokens: usage?.total_tokens ?? 0 }
  }

  /** Lets 64 callers send requests over all services until each is refused. Returns how many were served. */
  async function servedUntilRefused(key = services[0]!.key): Promise<number> {
    let served = 0
    async function live(caller: number): Promise<void> {
      for (let request = 0; ; request += 1) {
        const { status } = await chat(caller + request, 5, key)
        if (status === 402) return
        // A machine that is busy may lose its connection to Redis for a moment.
        if (status === 503) continue
        assert.equal(status, 200)
        served += 1
      }
    }
    await Promise.all(Array.from({ length: CALLERS }, (_, caller) => live(caller)))
    return served
  }

  async function newWorkspace(name: string, limits: object, ofKey: object = {}): Promise<string> {
    await asOperator('POST', 'workspaces', { name })
    await asOperator('PATCH', `workspaces/${name}`, limits)
    return (await asOperator<{ key: string }>('POST', 'keys', { workspace: name, ...ofKey })).key
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

  it('[S1] a hard spend limit is not overdrawn by 64 parallel callers, and all of it can be spent', async () => {
    await setLimit('3.00')
    const spent = BigInt(await servedUntilRefused()) * 3n
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
  it('the daily spend limit of a key is not overdrawn by 64 parallel callers', async () => {
    const before = await centsInLedger()
    const key = await newWorkspace('of-a-key', { requests_per_minute: 100_000 }, { spend_per_day: '1.50' })
    const spent = BigInt(await servedUntilRefused(key)) * 3n
    assert.ok(spent > 0n && spent <= 150n, `${spent} cents are spent`)
    await eventually('the ledger has every row', async () => (await centsInLedger()) === before + spent)
  })

  it('tokens per minute that one service has counted are refused by the others', async () => {
    const limit = 130
    const key = await newWorkspace('of-tokens', { tokens_per_minute: limit })
    await roomInThisMinute(30_000)
    let used = 0
    let requests = 0
    for (; used < limit; requests += 1) {
      const { status, tokens } = await chat(0, 3, key)
      assert.equal(status, 200, `${used} of ${limit} tokens are used`)
      used += tokens
    }
    for (const service of services.keys()) {
      let served = 0
      const isRefused = async (): Promise<boolean> => {
        const { status } = await chat(service, 3, key)
        if (status === 200) served += 1
        return status === 429
      }
      // The count reaches Redis a moment after the answer has ended. Counting alone, a service would serve as many again.
      await eventually('it is refused', isRefused)
      assert.ok(served < requests / 2, `${served} more were served, after ${requests}`)
    }
  })
})
