import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sdkOf, submit } from '../support/batches.ts'
import { stageConfig } from '../support/chat-stage.ts'
import { checkBatch, linesToKill, meteredEngine, untilHeld } from '../support/killed-batches.ts'
import { startPostgres } from '../support/postgres-server.ts'
import { startRedis } from '../support/redis-server.ts'
import { tcpProxy } from '../support/tcp-proxy.ts'
import { eventually } from '../support/waiting.ts'
import { BUSY_MACHINE_MS, weirProcess } from '../support/weir-process.ts'

const lines = linesToKill(200)

it('a batch goes on after its database was away, with every line once and a row for each answer', async (t) => {
  const engine = await meteredEngine(t, 50)
  const [postgres, redis] = [await startPostgres(), await startRedis()]
  const url = new URL(await postgres.createDatabase())
  const proxy = await tcpProxy(Number(url.port))
  t.after(async () => {
    await proxy.close()
    await postgres.remove()
    await redis.remove()
  })
  url.port = String(proxy.port)
  const config = stageConfig([engine.url], {
    limits: { max_concurrent_requests: 16 },
    config: { coordination: redis.url },
  })
  const service = await weirProcess(config, { WEIR_DATABASE_URL: url.href })
  t.after(() => service.remove())
  const { id } = await submit(sdkOf(service), lines)
  await untilHeld(engine)
  // Answers that arrive now cannot be kept, so they are not billed yet.
  proxy.blackHole(true)
  const answered = engine.calls.filter((it) => it.finished).length
  engine.allow(Infinity)
  await eventually(
    'lines are answered',
    () => engine.calls.filter((it) => it.finished).length > answered,
    BUSY_MACHINE_MS,
  )
  proxy.cut()
  proxy.blackHole(false)
  const client = sdkOf(service)
  const isBack = () =>
    client.batches.retrieve(id).then(
      () => true,
      () => false,
    )
  await eventually('the database is back', isBack, BUSY_MACHINE_MS)
  assert.equal(await checkBatch(client, id, lines, service), 0)
})
