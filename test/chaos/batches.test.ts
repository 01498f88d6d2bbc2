import assert from 'node:assert/strict'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sdkOf, submit } from '../support/batches.ts'
import { stageConfig } from '../support/chat-stage.ts'
import { checkBatch, linesToKill, meteredEngine } from '../support/killed-batches.ts'
import { startPostgres } from '../support/postgres-server.ts'
import { startRedis } from '../support/redis-server.ts'
import { s3Secrets, s3Stub } from '../support/s3-stub.ts'
import { eventually } from '../support/waiting.ts'
import { BUSY_MACHINE_MS, weirProcess } from '../support/weir-process.ts'
import { seededRandom } from '../../src/shared/seeded-random.ts'
import { simulationSeed } from '../simulation/seed.ts'

const REPLICAS = 3
const KILLS = 50
const LINES = 10_000
const PLACES = 16

it(`a batch of ${LINES} lines on ${REPLICAS} replicas that are killed ${KILLS} times has each line once`, async (t) => {
  const seed = simulationSeed()
  t.diagnostic(`WEIR_SEED=${seed}`)
  const random = seededRandom(seed)
  const engine = await meteredEngine(t, LINES / KILLS)
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
    limits: { max_concurrent_requests: PLACES, token_budget: 1_000_000 },
    config: { coordination: redis.url, files },
  })
  const environment = {
    WEIR_DATABASE_URL: await postgres.createDatabase(),
    ACCESS: s3Secrets.access,
    SECRET: s3Secrets.secret,
  }
  const replicas = [await weirProcess(config, environment)]
  t.after(() => Promise.all(replicas.map((it) => it.remove())))
  while (replicas.length < REPLICAS) replicas.push(await weirProcess(config, environment))
  const [first] = replicas
  assert.ok(first)
  const lines = linesToKill(LINES)
  const { id } = await submit(sdkOf(first), lines)
  for (let kill = 1; kill <= KILLS; kill++) {
    await sleep(random() * 2000)
    const victim = replicas[Math.floor(random() * REPLICAS)]!
    victim.signal('SIGKILL')
    await victim.ended()
    engine.allow(kill < KILLS ? LINES / KILLS : Infinity)
    await sleep(random() * 500)
    await victim.start()
  }
  const client = sdkOf({ key: first.key, base: replicas[1]!.base })
  const withoutRow = await checkBatch(client, id, lines, first)
  t.diagnostic(`${engine.calls.length} calls of the engine, ${withoutRow} answers delivered without a billed row`)
  // An answer is kept before its row is settled, so a kill may lose the rows of the lines that ran.
  assert.ok(withoutRow <= KILLS * PLACES)
  await eventually(
    'no place is taken',
    async () => {
      const answer = await fetch(`${replicas[2]!.base}/queue/status`, {
        headers: { authorization: `Bearer ${first.key}` },
      })
      const { data } = (await answer.json()) as { data: { in_flight_requests: number; committed_tokens: number }[] }
      return data.every((it) => it.in_flight_requests === 0 && it.committed_tokens === 0)
    },
    BUSY_MACHINE_MS,
  )
})
