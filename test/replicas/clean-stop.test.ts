import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it, type TestContext } from 'node:test'
import { Redis } from 'ioredis'
import { Client } from 'pg'
import { stageConfig } from '../support/chat-stage.ts'
import { leftAfterStop } from '../support/clean-stop.ts'
import { startPostgres, type PostgresServer } from '../support/postgres-server.ts'
import { startRedis, type RedisServer } from '../support/redis-server.ts'
import { scriptedEngine } from '../support/scripted-engine.ts'

describe('a replica that has stopped', () => {
  let postgres: PostgresServer
  let redis: RedisServer
  before(async () => {
    ;[postgres, redis] = await Promise.all([startPostgres(), startRedis()])
  })
  after(() => Promise.all([postgres.remove(), redis.remove()]))

  it('has left nothing open here, at PostgreSQL or at Redis, and is no member any more', async (t: TestContext) => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-stop-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const engine = await scriptedEngine()
    t.after(() => engine.close())
    const database = await postgres.createDatabase()
    // A new group waits for five seconds before it admits requests.
    const limits = { max_wait_ms: 60_000 }
    const config = stageConfig([engine.url], { limits, config: { coordination: redis.url, files: { kind: 'local' } } })
    const environment = { ENGINE_KEY: 'x', WEIR_DATABASE_URL: database }
    const use = `[await chat('meta/test-8b'), await chat('meta/test-8b', { stream: true })]`
    const left = await leftAfterStop(t, folder, config, { use, environment })
    const nothing = { open: [], files: [], children: [] }
    assert.deepEqual(left, { used: [200, 200], refused: true, operatorRefused: true, ...nothing })
    assert.deepEqual(await atRedis(), { clients: 1, replicas: ['epoch', 'quiet_until', 'run_id'], requests: [] })
    assert.deepEqual(await atPostgres(database), { sessions: 0, intents: 0, rows: 2 })
  })

  /** This client, the members of the group, and the requests in the lane. */
  async function atRedis(): Promise<object> {
    const client = new Redis(redis.url)
    try {
      const replicas = await client.hkeys('weir:{replicas}')
      const lane = await client.hkeys('weir:{meta/test-8b}:lane')
      const settings = new Set(['epoch', 'limits', 'per_workspace', 'batch_limits', 'figures'])
      return {
        clients: String(await client.client('LIST')).match(/^id=/gm)?.length,
        replicas: replicas.toSorted(),
        requests: lane.filter((it) => !settings.has(it)),
      }
    } finally {
      client.disconnect()
    }
  }

  async function atPostgres(connectionString: string): Promise<object | undefined> {
    const client = new Client({ connectionString })
    await client.connect()
    try {
      const others = 'FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()'
      const counts = `SELECT (SELECT count(*)::int ${others}) AS sessions,
        (SELECT count(*)::int FROM intents) AS intents, (SELECT count(*)::int FROM ledger) AS rows`
      return (await client.query<Record<string, number>>(counts)).rows[0]
    } finally {
      await client.end()
    }
  }
})
