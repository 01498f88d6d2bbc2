/**
 * What batches cost and bring. First a day of online requests, compressed, at an engine of 16 places: without batches, then
 * with a batch that always has lines waiting: how much of the places is in use, and how long online requests wait. Then
 * the CPU time of a line, all of it, in one process on SQLite. Then lines through four replicas on PostgreSQL and Redis: their
 * CPU time, and whether their memory grows.
 *
 * npm run bench -- batches [SECONDS OF THE DAY] [LINES] [day | line | replicas]
 */
import { setTimeout as sleep } from 'node:timers/promises'
import OpenAI, { toFile } from 'openai'
import { Pool } from 'undici'
import { seededRandom } from '../src/shared/seeded-random.ts'
import { startPostgres } from '../test/support/postgres-server.ts'
import { startRedis } from '../test/support/redis-server.ts'
import { s3Secrets, s3Stub } from '../test/support/s3-stub.ts'
import { residentBytes, weirProcess } from '../test/support/weir-process.ts'
import { figure, MEBIBYTES, MILLISECONDS } from './figures.ts'
import { cpuMicroseconds, forked } from './measuring.ts'
import { benchModel, startWeir } from './weir-process.ts'

const daySeconds = Number(process.argv[2] ?? 180)
const lineCount = Number(process.argv[3] ?? 1_000_000)
const PLACES = 16
const CALL_MS = 600
const MAX_LINES = 50_000
const PERCENT = { unit: '%', digits: 1 }
const limits = {
  token_budget: 1_000_000_000,
  max_concurrent_requests: PLACES,
  max_queue_depth: 256,
  max_wait_ms: 120_000,
  batch: { reserve_concurrent: 0, reserve_tokens: 0 },
}
const chat = { model: 'bench/model', messages: [{ role: 'user', content: 'Tell me about the weir.' }], max_tokens: 20 }

/** The share of the places that online requests need in each hour: 40 % on average, and all of them three times a day. */
const hours = [10, 10, 5, 5, 5, 10, 20, 40, 40, 100, 40, 50, 50, 40, 100, 40, 50, 50, 60, 100, 60, 40, 20, 15]
const mean = hours.reduce((sum, it) => sum + it, 0) / hours.length

const parts: Record<string, () => Promise<void>> = { day: aDay, line: aLine, replicas: fourReplicas }
const chosen = process.argv.slice(4)
for (const [name, part] of Object.entries(parts)) if (chosen.length === 0 || chosen.includes(name)) await part()

async function aDay(): Promise<void> {
  console.log(
    `a day in ${daySeconds} s (compressed ${Math.round(86_400 / daySeconds)} times), calls of about ${CALL_MS} ms`,
  )
  const without = await playDay(false)
  const withLines = await playDay(true)
  for (const [name, { use, p95 }] of [
    ['without', without],
    ['with', withLines],
  ] as const) {
    figure(`use.${name}`, PERCENT, [use])
    figure(`wait.${name}`, MILLISECONDS, [p95])
    console.log(`  ${name} batches: ${use.toFixed(1)} % of the places in use, online p95 wait ${p95.toFixed(1)} ms`)
  }
  const most = without.p95 * 1.05 + 5
  console.log(`  targets: use at least 95 %, wait at most ${most.toFixed(1)} ms\n`)
}

async function playDay(hasBatch: boolean): Promise<{ use: number; p95: number }> {
  const engine = await forked(new URL('batch-engine.ts', import.meta.url), String(CALL_MS))
  const engineUrl = `http://127.0.0.1:${engine.port}/v1`
  const weir = await startWeir({ log: { level: 'warn' }, models: [benchModel(engineUrl, limits)] })
  const pool = new Pool(weir.origin, { connections: 512 })
  try {
    if (hasBatch) {
      const client = new OpenAI({ baseURL: `${weir.origin}/api/v1`, apiKey: weir.key })
      await submit(client, Math.min(MAX_LINES, Math.ceil((daySeconds * 1000 * PLACES) / CALL_MS)))
      await sleep(3000)
    }
    const before = await busy(engineUrl)
    const waits = await playOnline(pool, weir.key)
    const after = await busy(engineUrl)
    const use = (100 * (after.busyMs - before.busyMs)) / (PLACES * (after.at - before.at))
    return { use, p95: quantile(waits, 0.95) }
  } finally {
    await pool.close()
    await weir.stop()
    engine.kill()
  }
}

/** Sends the requests of a day, at times that are the same in each run. Returns how long each waited for its place. */
async function playOnline(pool: Pool, key: string): Promise<readonly number[]> {
  const random = seededRandom(7)
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const running: Promise<number>[] = []
  const startedAt = performance.now()
  for (let atMs = 0; ;) {
    const share = hours[Math.floor((atMs / 1000 / daySeconds) * hours.length)] ?? mean
    atMs += (-Math.log(1 - random()) * CALL_MS) / ((PLACES * share) / 100)
    if (atMs >= daySeconds * 1000) break
    await sleep(Math.max(0, startedAt + atMs - performance.now()))
    running.push(send())
  }
  return Promise.all(running)

  async function send(): Promise<number> {
    const body = JSON.stringify(chat)
    const answer = await pool.request({ method: 'POST', path: '/api/v1/chat/completions', headers, body })
    await answer.body.dump()
    if (answer.statusCode !== 200) throw new Error(`an online request got ${answer.statusCode}`)
    return Number(answer.headers['x-queue-wait-ms'])
  }
}

async function aLine(): Promise<void> {
  const lines = Math.min(10_000, lineCount)
  const engine = await forked(new URL('batch-engine.ts', import.meta.url), '1')
  const weir = await startWeir({
    log: { level: 'warn' },
    models: [benchModel(`http://127.0.0.1:${engine.port}/v1`, limits)],
  })
  try {
    const client = new OpenAI({ baseURL: `${weir.origin}/api/v1`, apiKey: weir.key })
    await ended(client, await submit(client, 500))
    const before = cpuMicroseconds(weir.pid)
    await ended(client, await submit(client, lines))
    const each = (cpuMicroseconds(weir.pid) - before) / lines / 1000
    figure('line', { unit: 'ms', digits: 2 }, [each])
    console.log(
      `a line, from its upload to its result: ${each.toFixed(2)} ms of CPU, over ${lines} (target: at most 1)\n`,
    )
  } finally {
    await weir.stop()
    engine.kill()
  }
}

async function fourReplicas(): Promise<void> {
  const engine = await forked(new URL('batch-engine.ts', import.meta.url), '20')
  const [postgres, redis, bucket] = [await startPostgres(), await startRedis(), await s3Stub()]
  const config = {
    server: { port: 0, admin_port: 0, drain_ms: 0 },
    coordination: redis.url,
    files: {
      kind: 's3',
      endpoint: bucket.url,
      bucket: 'weir',
      region: s3Secrets.region,
      access_key_env: 'ACCESS',
      secret_key_env: 'SECRET',
    },
    rate_limit: { requests_per_minute: 100_000_000 },
    models: [benchModel(`http://127.0.0.1:${engine.port}/v1`, { ...limits, max_concurrent_requests: 4 * PLACES })],
  }
  const environment = {
    WEIR_DATABASE_URL: await postgres.createDatabase(),
    ACCESS: s3Secrets.access,
    SECRET: s3Secrets.secret,
  }
  const replicas = [await weirProcess(config, environment)]
  try {
    while (replicas.length < 4) replicas.push(await weirProcess(config, environment))
    const { base, key } = replicas[0]!
    const client = new OpenAI({ baseURL: base, apiKey: key })
    const memory = (): number =>
      replicas.reduce((sum, { pid }) => sum + residentBytes(pid), 0) / replicas.length / 2 ** 20
    const cpu = (): number => replicas.reduce((sum, { pid }) => sum + cpuMicroseconds(pid), 0)
    const size = Math.min(MAX_LINES, Math.ceil(lineCount / 10))
    await ended(client, await submit(client, size))
    const cpuBefore = cpu()
    const memoryAfter = [memory()]
    for (let done = size; done < lineCount; done += size) {
      await ended(client, await submit(client, size))
      memoryAfter.push(memory())
      console.log(`  ${done + size} lines, ${memoryAfter.at(-1)!.toFixed(0)} MiB`)
    }
    const each = (cpu() - cpuBefore) / (size * (memoryAfter.length - 1)) / 1000
    figure('replicas.lines', { unit: '', digits: 0 }, [lineCount])
    figure('replicas.memory', MEBIBYTES, memoryAfter)
    figure('replicas.line', { unit: 'ms', digits: 2 }, [each])
    console.log(
      `${lineCount} lines through four replicas: ${each.toFixed(2)} ms of CPU each; ${memoryAfter[0]!.toFixed(0)} MiB after the first ${size}`,
    )
  } finally {
    await Promise.all(replicas.map((it) => it.remove()))
    await postgres.remove()
    await redis.remove()
    await bucket.close()
    engine.kill()
  }
}

async function submit(client: OpenAI, lines: number): Promise<string> {
  const line = (id: number) =>
    JSON.stringify({ custom_id: String(id), method: 'POST', url: '/v1/chat/completions', body: chat })
  const content = Buffer.from(Array.from({ length: lines }, (_, id) => line(id)).join('\n'))
  const file = await client.files.create({ file: await toFile(content, 'lines.jsonl'), purpose: 'batch' })
  const batch = await client.batches.create({
    input_file_id: file.id,
    endpoint: '/v1/chat/completions',
    completion_window: '24h',
  })
  return batch.id
}

async function ended(client: OpenAI, id: string): Promise<void> {
  for (;;) {
    const { status, request_counts: counts } = await client.batches.retrieve(id)
    if (status === 'completed' && counts?.failed === 0) return
    if (!['validating', 'in_progress', 'finalizing'].includes(status)) throw new Error(`the batch is ${status}`)
    await sleep(500)
  }
}

async function busy(url: string): Promise<{ busyMs: number; at: number }> {
  return (await (await fetch(url)).json()) as { busyMs: number; at: number }
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}
