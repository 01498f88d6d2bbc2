import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { DatabaseSync } from 'node:sqlite'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { Pool } from 'undici'
import { figure, MICROSECONDS } from './figures.ts'
import { cpuMicroseconds, forked, median } from './measuring.ts'
import { benchModel, startWeir, type WeirProcess } from './weir-process.ts'

/**
 * How the cost of a request grows: with the models of the catalog, the keys, the rows of the ledger, the requests that
 * wait in the queue and the streams that run. Each table should be flat.
 *
 * npm run bench -- growth [MODELS KEYS ROWS QUEUE STREAMS]: the largest of each; 0 leaves a table out. The defaults take a
 * few minutes.
 */
const [maxModels, maxKeys, maxRows, maxQueue, maxStreams] = [1000, 10_000, 100_000, 1000, 1000].map((usual, index) =>
  Number(process.argv[index + 2] ?? usual),
) as [number, number, number, number, number]

const REQUESTS = 3000
const ROUNDS = 3
const AT_A_TIME = 32
/** What http/engine.ts sends. */
const TOKENS_OF_A_STREAM = 64
const limits = { token_budget: 1_000_000_000, max_concurrent_requests: 20_000, max_queue_depth: 20_000 }

const engine = await forked(new URL('http/engine.ts', import.meta.url))
const engineUrl = `http://127.0.0.1:${engine.port}/v1`
try {
  if (maxModels > 0) await table('models', sizes(maxModels), 'ms to ready', withModels)
  if (maxKeys > 0) await table('keys', sizes(maxKeys), 'ms to ready', withKeys)
  if (maxRows > 0) await table('ledger rows', [0, ...sizes(maxRows).slice(2)], 'ms to ready', withRows)
  if (maxQueue > 0) await table('requests in the queue', [0, ...sizes(maxQueue).slice(1)], '', withQueue)
  if (maxStreams > 0) await table('streams at a time', sizes(maxStreams), '', withStreams)
} finally {
  engine.kill()
}

interface Seen {
  readonly cpu: number
  readonly readyMs?: number
}

/** 1, 10, 100 … up to the largest. */
function sizes(largest: number): number[] {
  const list: number[] = []
  for (let size = 1; size < largest; size *= 10) list.push(size)
  return [...list, largest]
}

async function table(
  what: string,
  counts: readonly number[],
  second: string,
  measure: (count: number) => Promise<Seen>,
): Promise<void> {
  const unit = what.startsWith('streams') ? 'token' : 'request'
  console.log(`\n${what.padEnd(24)}${`CPU µs/${unit}`.padStart(16)}${second.padStart(16)}`)
  for (const count of counts) {
    const { cpu, readyMs } = await measure(count)
    figure(`${what}.${count}`, MICROSECONDS, [cpu])
    const cells = [cpu.toFixed(1), readyMs === undefined ? '' : readyMs.toFixed(0)]
    console.log(count.toLocaleString('en-AU').padEnd(24) + cells.map((cell) => cell.padStart(16)).join(''))
  }
}

async function withModels(count: number): Promise<Seen> {
  const models = Array.from({ length: count }, (_, index) => benchModel(engineUrl, limits, `bench/model-${index}`))
  return served(models, () => {})
}

function withKeys(count: number): Promise<Seen> {
  return served([benchModel(engineUrl, limits, 'bench/model-0')], (database) => {
    const [{ id } = { id: '' }] = database.prepare('SELECT id FROM workspaces').all() as { id: string }[]
    const sql = 'INSERT INTO api_keys (id, workspace_id, hash, created_at) VALUES (?, ?, ?, ?)'
    const insert = database.prepare(sql)
    for (let key = 1; key < count; key++)
      insert.run(`key_${key}`, id, createHash('sha256').update(`${key}`).digest('hex'), key)
  })
}

/** The rows are copies of one that was served. They count as summed: a service sums rows as it adds them. */
function withRows(count: number): Promise<Seen> {
  return served([benchModel(engineUrl, limits, 'bench/model-0')], (database) => {
    if (count === 0) return
    const names = database.prepare('PRAGMA table_info(ledger)').all() as { name: string }[]
    const columns = names.map(({ name }) => name).filter((name) => name !== 'position')
    const values = columns.map((name) => (name === 'request_id' ? "request_id || '-' || number" : name))
    database.exec(`WITH RECURSIVE numbers(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < ${count})
      INSERT INTO ledger (${columns.join(', ')}) SELECT ${values.join(', ')} FROM (SELECT * FROM ledger LIMIT 1), numbers`)
    database.exec('UPDATE usage_summed SET position = (SELECT max(position) FROM ledger)')
  })
}

/** Starts once, fills the database while nothing runs, and measures the next start and what requests cost then. */
async function served(models: readonly object[], fill: (database: DatabaseSync) => void): Promise<Seen> {
  const first = await startWeir({ models })
  await send(first, 1)
  const weir = await first.restarted(() => {
    const database = new DatabaseSync(join(first.dataDir, 'weir.db'))
    // The file is disposable if this is interrupted.
    database.exec('PRAGMA journal_mode = DELETE; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN')
    fill(database)
    database.exec('COMMIT; PRAGMA journal_mode = WAL')
    database.close()
  })
  try {
    await send(weir, REQUESTS)
    return { cpu: await costOf(weir, () => send(weir, REQUESTS), REQUESTS), readyMs: weir.readyMs }
  } finally {
    await weir.stop()
  }
}

/** Other requests wait for one that never ends, on a model of their own. */
async function withQueue(depth: number): Promise<Seen> {
  const silent = createServer(() => {})
  silent.listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/v1`
  const narrow = { token_budget: 1_000_000_000, max_concurrent_requests: 1, max_queue_depth: 20_000 }
  const models = [benchModel(engineUrl, limits, 'bench/model-0'), benchModel(url, narrow, 'bench/silent')]
  const weir = await startWeir({ models })
  const waiting = new Pool(weir.origin, { connections: depth + 1, headersTimeout: 0 })
  try {
    const held = depth === 0 ? 0 : depth + 1
    for (let count = 0; count < held; count++) waiting.request(requestTo(weir, 'bench/silent')).catch(() => {})
    await send(weir, REQUESTS)
    return { cpu: await costOf(weir, () => send(weir, REQUESTS), REQUESTS) }
  } finally {
    await waiting.destroy()
    silent.closeAllConnections()
    silent.close()
    await weir.stop()
  }
}

async function withStreams(atATime: number): Promise<Seen> {
  const weir = await startWeir({ models: [benchModel(engineUrl, limits, 'bench/model-0')] })
  const streams = Math.max(300, atATime)
  try {
    await send(weir, 300, true, Math.min(atATime, 100))
    const cost = await costOf(weir, () => send(weir, streams, true, atATime), streams * TOKENS_OF_A_STREAM)
    return { cpu: cost }
  } finally {
    await weir.stop()
  }
}

async function costOf(weir: WeirProcess, work: () => Promise<void>, units: number): Promise<number> {
  const seen: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const before = cpuMicroseconds(weir.pid)
    await work()
    seen.push((cpuMicroseconds(weir.pid) - before) / units)
  }
  return median(seen)
}

async function send(weir: WeirProcess, count: number, stream = false, atATime = AT_A_TIME): Promise<void> {
  const pool = new Pool(weir.origin, { connections: atATime, headersTimeout: 120_000 })
  let left = count
  const caller = async (): Promise<void> => {
    while (left-- > 0) {
      const response = await pool.request(requestTo(weir, 'bench/model-0', stream))
      const text = await response.body.text()
      if (response.statusCode !== 200) throw new Error(`${response.statusCode} ${text}`)
    }
  }
  await Promise.all(Array.from({ length: atATime }, caller))
  await pool.close()
}

function requestTo(weir: WeirProcess, model: string, stream = false) {
  const messages = [{ role: 'user', content: 'Tell me about the river and its weir. '.repeat(25) }]
  return {
    method: 'POST' as const,
    path: '/api/v1/chat/completions',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${weir.key}` },
    body: JSON.stringify({ model, messages, ...(stream ? { stream } : {}) }),
  }
}
