/**
 * What a second worker brings. The load, the engine, Redis and PostgreSQL share the cores of this machine with the workers, so
 * requests per second alone say little. What counts is the CPU time that the busiest worker uses for a request: with a core of
 * its own for each worker, and others for everything else, that is what bounds the service. It measures a service with one
 * worker and one with two, in turns, and what a request costs in Redis and in PostgreSQL, which all workers share.
 */
import { Pool } from 'undici'
import { startPostgres } from '../test/support/postgres-server.ts'
import { startRedis } from '../test/support/redis-server.ts'
import { figure, MICROSECONDS, RATIO } from './figures.ts'
import { childrenOf, cpuMicroseconds, forked, median } from './measuring.ts'
import { benchModel, startWeir, type WeirProcess } from './weir-process.ts'

const REQUESTS = 3000
const ROUNDS = 5
const AT_A_TIME = 64

interface Sample {
  /** CPU time in microseconds for a request: of the busiest worker, of all workers, and of what they share. */
  readonly busiest: number
  readonly workers: number
  readonly redis: number
  readonly database: number
  readonly perSecond: number
}

const engine = await forked(new URL('http/engine.ts', import.meta.url))
const database = await startPostgres()
const services: { readonly workers: number; readonly weir: WeirProcess; readonly redisPid: number }[] = []
const over: (() => Promise<void>)[] = []
try {
  for (const workers of [1, 2]) {
    const redis = await startRedis()
    over.push(redis.remove)
    const models = [
      benchModel(`http://127.0.0.1:${engine.port}/v1`, { token_budget: 10_000_000, max_concurrent_requests: 1000 }),
    ]
    const config = { models, coordination: redis.url, database: await database.createDatabase() }
    const weir = await startWeir(config, { workers })
    over.push(weir.stop)
    while (childrenOf(weir.pid).length < workers) await new Promise((resolve) => setTimeout(resolve, 50))
    services.push({ workers, weir, redisPid: redis.pid })
  }
  const samples = new Map<number, Sample[]>(services.map(({ workers }) => [workers, []]))
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const service of services) {
      const sample = await measure(service.weir, service.redisPid)
      // The first round warms up.
      if (round > 0) samples.get(service.workers)?.push(sample)
    }
  }
  report(samples.get(1) ?? [], samples.get(2) ?? [])
} finally {
  for (const end of over.toReversed()) await end()
  await database.remove()
  engine.kill()
}

async function measure(weir: WeirProcess, redisPid: number): Promise<Sample> {
  // New connections each time, since they decide which worker serves.
  const pool = new Pool(weir.origin, { connections: AT_A_TIME })
  const workers = childrenOf(weir.pid)
  const used = () => ({
    workers: workers.map(cpuMicroseconds),
    redis: cpuMicroseconds(redisPid),
    database: childrenOf(database.pid).reduce((sum, pid) => sum + cpuMicroseconds(pid), 0),
  })
  const before = used()
  const startedAtMs = performance.now()
  let left = REQUESTS
  async function caller(): Promise<void> {
    while (left > 0) {
      left -= 1
      await call(pool, weir.key)
    }
  }
  await Promise.all(Array.from({ length: AT_A_TIME }, caller))
  const seconds = (performance.now() - startedAtMs) / 1000
  const after = used()
  await pool.close()
  const each = after.workers.map((micros, index) => (micros - (before.workers[index] ?? 0)) / REQUESTS)
  return {
    busiest: Math.max(...each),
    workers: each.reduce((sum, micros) => sum + micros, 0),
    redis: (after.redis - before.redis) / REQUESTS,
    database: (after.database - before.database) / REQUESTS,
    perSecond: REQUESTS / seconds,
  }
}

async function call(pool: Pool, key: string): Promise<void> {
  const response = await pool.request({
    method: 'POST',
    path: '/api/v1/chat/completions',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({
      model: 'bench/model',
      messages: [{ role: 'user', content: 'Tell me about the river and its weir. '.repeat(18) }],
    }),
  })
  const text = await response.body.text()
  if (response.statusCode !== 200) throw new Error(`${response.statusCode} ${text}`)
}

function report(one: readonly Sample[], two: readonly Sample[]): void {
  console.log(`\nWhole answers, ${REQUESTS} requests × ${ROUNDS}, ${AT_A_TIME} at a time; medians`)
  console.log('             CPU µs/request:                                       all on this machine:')
  console.log('             all workers   busiest worker   Redis   PostgreSQL     requests/s')
  for (const [name, samples] of [
    ['one worker', one],
    ['two workers', two],
  ] as const) {
    const of = (what: keyof Sample, width: number): string =>
      median(samples.map((sample) => sample[what]))
        .toFixed(0)
        .padStart(width)
    for (const what of ['workers', 'busiest', 'redis', 'database'] as const) {
      figure(
        `${name}.${what}`,
        MICROSECONDS,
        samples.map((it) => it[what]),
      )
    }
    console.log(
      name.padEnd(13) +
        of('workers', 11) +
        of('busiest', 17) +
        of('redis', 8) +
        of('database', 13) +
        of('perSecond', 15),
    )
  }
  const middle = (samples: readonly Sample[], what: 'busiest' | 'workers'): number =>
    median(samples.map((it) => it[what]))
  const split = middle(one, 'workers') / middle(two, 'busiest')
  const even = (2 * middle(one, 'workers')) / middle(two, 'workers')
  figure('two of one', RATIO, [even])
  console.log(`\nWith a core for each worker, two serve ${even.toFixed(2)} × as much as one if callers keep both busy,`)
  console.log(`and ${split.toFixed(2)} × with the split of connections seen here.`)
}
