import { describe, it } from 'node:test'
import { sdkOf, submit } from '../support/batches.ts'
import { stageConfig } from '../support/chat-stage.ts'
import { checkBatch, linesToKill, meteredEngine, untilHeld } from '../support/killed-batches.ts'
import { runLength } from '../support/long-run.ts'
import { startPostgres } from '../support/postgres-server.ts'
import { startRedis } from '../support/redis-server.ts'
import { s3Secrets, s3Stub } from '../support/s3-stub.ts'
import { eventually } from '../support/waiting.ts'
import { weirProcess } from '../support/weir-process.ts'

const KILLS = runLength(1, 2)
/** How many lines are answered before the next kill. */
const LINES_PER_KILL = 50
const lines = linesToKill(150)

describe('a batch whose service is killed again and again', () => {
  it('[B2] has every line once in its files, and a row for each answer', async (t) => {
    const engine = await meteredEngine(t, LINES_PER_KILL)
    const limits = { max_concurrent_requests: 16 }
    const service = await weirProcess(stageConfig([engine.url], { limits }))
    t.after(() => service.remove())
    const { id } = await submit(sdkOf(service), lines)
    for (let kill = 1; kill <= KILLS; kill++) {
      await untilHeld(engine)
      service.signal('SIGKILL')
      await service.ended()
      engine.calls.length = 0
      engine.allow(kill < KILLS ? LINES_PER_KILL : Infinity)
      await service.start()
    }
    // A row is in the database a moment after its answer.
    await eventually('a row for each answer', async () => (await checkBatch(sdkOf(service), id, lines, service)) === 0)
  })
})

describe('a batch that several services run on one PostgreSQL', () => {
  it('has every line once, also if services are killed or stopped', async (t) => {
    const engine = await meteredEngine(t, LINES_PER_KILL)
    const [postgres, redis, bucket] = [await startPostgres(), await startRedis(), await s3Stub()]
    t.after(async () => {
      await postgres.remove()
      await redis.remove()
      await bucket.close()
    })
    const files = {
      kind: 's3',
      endpoint: bucket.url,
      bucket: 'weir',
      region: s3Secrets.region,
      access_key_env: 'ACCESS',
      secret_key_env: 'SECRET',
    }
    const config = stageConfig([engine.url], {
      limits: { max_concurrent_requests: 16 },
      config: { coordination: redis.url, files },
    })
    const environment = {
      WEIR_DATABASE_URL: await postgres.createDatabase(),
      ACCESS: s3Secrets.access,
      SECRET: s3Secrets.secret,
    }
    const services = [await weirProcess(config, environment), await weirProcess(config, environment)]
    t.after(async () => {
      for (const service of services) await service.remove()
    })
    const [first, second] = [services[0]!, services[1]!]
    const { id } = await submit(sdkOf(first), lines)
    for (const [victim, signal, allowed] of [
      [first, 'SIGKILL', LINES_PER_KILL],
      [second, 'SIGTERM', Infinity],
    ] as const) {
      await untilHeld(engine)
      victim.signal(signal)
      await victim.ended()
      engine.calls.length = 0
      engine.allow(allowed)
      await victim.start()
    }
    const client = sdkOf({ key: first.key, base: second.base })
    // A service may have kept an answer and died before its row was settled, and the other one has delivered it.
    await eventually('the other rows', async () => (await checkBatch(client, id, lines, first)) <= 16)
  })
})
