import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { journalFolder } from '../../src/ledger/journal/journal-files-on-disk.ts'
import { stageConfig } from './chat-stage.ts'
import { commandLine } from './command-line.ts'
import { requestOnce, check, type Received } from './killed-service.ts'
import { limitWaits, startPgBouncer, type PgBouncerOptions } from './pgbouncer.ts'
import { startPostgres } from './postgres-server.ts'
import { startRedis } from './redis-server.ts'
import { scriptedEngine } from './scripted-engine.ts'
import { eventually } from './waiting.ts'
import { weirProcess, type WeirProcess } from './weir-process.ts'

const CALLERS = 12

/**
 * Kills three services on one PostgreSQL and one Redis, and PostgreSQL itself, again and again under load, and checks the books
 * afterwards. Returns how many answers callers received. With `pooling`, the services reach PostgreSQL through PgBouncer.
 */
export async function killServicesAndPostgres(kills: number, pooling?: PgBouncerOptions): Promise<number> {
  await using opened = new AsyncDisposableStack()
  const postgres = opened.adopt(await startPostgres(), (it) => it.remove())
  const redis = opened.adopt(await startRedis(), (it) => it.remove())
  const engine = opened.adopt(await scriptedEngine(), (it) => it.close())
  engine.script = { tokens: ['a', 'b', 'c', 'd'], tokenMs: 50, promptTokens: 17, continuousUsage: true }
  let databaseUrl = await postgres.createDatabase()
  if (pooling) {
    const pooler = opened.adopt(await startPgBouncer(postgres, pooling), (it) => it.remove())
    databaseUrl = pooler.behind(await limitWaits(databaseUrl))
  }
  const config = stageConfig([engine.url], {
    limits: { max_concurrent_requests: 64 },
    config: { coordination: redis.url },
  })
  const services: WeirProcess[] = []
  for (let index = 0; index < 3; index++) {
    const environment = { WEIR_DATABASE_URL: databaseUrl }
    services.push(opened.adopt(await weirProcess(config, environment), (it) => it.remove()))
  }
  const key = services[0]!.key
  const received: Received[] = []
  const load = { isOver: false }
  const callers = Array.from({ length: CALLERS }, async (_, index) => {
    while (!load.isOver) {
      // A service that was killed has another address after its restart.
      const { base } = services[index % services.length]!
      await requestOnce(base, key, index % 2 === 0).then(
        (it) => received.push(it),
        () => sleep(5),
      )
    }
  })
  const moreAnswers = async (): Promise<void> => {
    const before = received.length
    await eventually('answers come', () => received.length > before + 3 * CALLERS, 60_000)
  }
  await moreAnswers()
  for (let kill = 0; kill < kills; kill += 1) {
    const service = services[kill % services.length]!
    const owner = join(journalFolder(service.dataDir), 'owner')
    const before = readFileSync(owner, 'utf8')
    service.signal('SIGKILL')
    await service.ended()
    await service.start()
    assert.notEqual(readFileSync(owner, 'utf8'), before, 'every process has a name of its own')
    await moreAnswers()
    if (kill % 3 !== 0 || kill === 0) continue
    // Answers go on without PostgreSQL.
    await postgres.kill()
    await moreAnswers()
    await postgres.start()
    await moreAnswers()
  }
  await postgres.kill()
  await moreAnswers()
  const [, , last] = services
  last!.signal('SIGKILL')
  await last!.ended()
  await postgres.start()
  await moreAnswers()
  load.isOver = true
  await Promise.all(callers)

  // The third does not start again: its journal is shipped by hand.
  const environment = { WEIR_DATABASE_URL: databaseUrl }
  const shipped = (await commandLine(['journal', 'ship', last!.dataDir, '--json'], { environment })).json<{
    rows: number
  }>()
  assert.ok(shipped.rows > 0)
  for (const service of services.slice(0, 2)) {
    service.signal('SIGTERM')
    assert.equal(await service.ended(), 0)
  }
  for (const { dataDir } of services) assert.deepEqual(readdirSync(journalFolder(dataDir)), ['owner'])
  const interrupted = await check({ dataDir: services[0]!.dataDir, databaseUrl }, received)
  assert.ok(interrupted > 0, 'requests were under way when the services were killed')
  return received.length
}
