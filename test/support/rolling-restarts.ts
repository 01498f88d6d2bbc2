import assert from 'node:assert/strict'
import { stageConfig } from './chat-stage.ts'
import { commandLine } from './command-line.ts'
import { startPostgres } from './postgres-server.ts'
import { startRedis } from './redis-server.ts'
import { scriptedEngine } from './scripted-engine.ts'
import { eventually } from './waiting.ts'
import { weirProcess, type WeirProcess } from './weir-process.ts'

const SERVICES = 3
const CONCURRENCY = 6
const CALLERS = 24

/** What callers saw while the services were restarted one after the other. */
export interface RollingFigures {
  served: number
  /** 503 with Retry-After. */
  refused: number
  /** Anything else. */
  readonly failures: string[]
}

/**
 * Restarts services on one PostgreSQL and one Redis, one after the other, under load. As with any load balancer, no request is sent to a
 * service that is about to stop; those who are there already wait or run.
 */
export async function rollingRestarts(restarts: number): Promise<RollingFigures> {
  const [redis, postgres, engine] = await Promise.all([startRedis(), startPostgres(), scriptedEngine()])
  engine.script = { tokens: ['a', 'b', 'c'], tokenMs: 60 }
  const database = await postgres.createDatabase()
  const config = stageConfig([engine.url], {
    limits: { max_concurrent_requests: CONCURRENCY, max_queue_depth: 500, max_wait_ms: 60_000 },
    config: { coordination: redis.url, database, server: { port: 0, admin_port: 0, drain_ms: 60_000 } },
  })
  const services: WeirProcess[] = []
  const figures: RollingFigures = { served: 0, refused: 0, failures: [] }
  const out = new Set<WeirProcess>()
  const over = new AbortController()

  async function call(service: WeirProcess, key: string, stream: boolean): Promise<void> {
    const response = await fetch(`${service.base}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${key}`, connection: 'close' },
      body: JSON.stringify({ model: 'meta/test-8b', messages: [{ role: 'user', content: 'Hi' }], stream }),
    })
    const text = await response.text()
    if (response.status === 200 && (!stream || text.includes('[DONE]'))) figures.served += 1
    else if (response.status === 503 && response.headers.get('retry-after') !== null) figures.refused += 1
    else figures.failures.push(`${response.status} ${text.slice(-300)}`)
  }

  async function caller(number: number, key: string): Promise<void> {
    for (let turn = number; !over.signal.aborted; turn += 1) {
      const open = services.filter((service) => !out.has(service))
      const service = open[turn % open.length]
      if (!service) continue
      await call(service, key, turn % 2 === 0).catch(({ message, cause }: Error) => {
        figures.failures.push(`${message}: ${String(cause)}`)
      })
    }
  }

  try {
    for (let number = 0; number < SERVICES; number += 1) services.push(await weirProcess(config))
    const key = services[0]?.key ?? ''
    const load = Promise.all(Array.from({ length: CALLERS }, (_, number) => caller(number, key)))
    const serves = async (what: string): Promise<void> => {
      const before = figures.served
      await eventually(what, () => figures.served > before + 30, 60_000)
    }
    await serves('it serves')
    for (let restart = 0; restart < restarts; restart += 1) {
      const service = services[restart % SERVICES]!
      out.add(service)
      service.signal('SIGTERM')
      assert.equal(await service.ended(), 0)
      await service.start()
      out.delete(service)
      await serves(`it serves after restart ${restart + 1}`)
    }
    over.abort()
    await load
    assert.ok(engine.maxRunning <= CONCURRENCY, `${engine.maxRunning} at once`)
    await requireBooks(services[0]!, database, figures.served)
    return figures
  } finally {
    over.abort()
    for (const service of services) await service.remove()
    await engine.close()
    await redis.remove()
    await postgres.remove()
  }
}

/** Every answer has its row, and the books agree. */
async function requireBooks({ dataDir }: WeirProcess, database: string, served: number): Promise<void> {
  const environment = { WEIR_DATABASE_URL: database }
  const books = (...args: string[]) => commandLine([...args, '--data', dataDir, '--json'], { environment })
  assert.equal((await books('reconcile')).code, 0)
  await eventually('every answer has its row', async () => {
    const { data } = (await books('usage', '--workspace', 'default')).json<{ data: unknown[] }>()
    return data.length === served
  })
}
