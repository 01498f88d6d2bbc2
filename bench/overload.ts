/**
 * Measures how much a lane still completes when it gets ten times the requests it can serve, and how fast the rest is
 * refused. The baselines are the same service in the same run: first quiet, then exactly as busy as the lane allows.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'undici'
import { figure } from './figures.ts'
import { forked } from './measuring.ts'
import { benchModel, startWeir } from './weir-process.ts'

const seconds = Number(process.argv[2] ?? 60)
const LANE = 16
const DEPTH = 64
const ENGINE_MS = 200
const OVERLOAD = 10
const capacity = (LANE / ENGINE_MS) * 1000

const body = JSON.stringify({
  model: 'bench/model',
  messages: [{ role: 'user', content: 'Tell me about the river and its weir. '.repeat(25) }],
  max_tokens: 100,
})

interface Outcome {
  readonly status: number
  readonly code: string | undefined
  readonly ms: number
  readonly endedAtMs: number
}

const engine = await forked(new URL('slow-engine.ts', import.meta.url), String(ENGINE_MS))
const weir = await startWeir({
  log: { level: 'warn' },
  models: [
    benchModel(`http://127.0.0.1:${engine.port}/v1`, {
      token_budget: 1_000_000,
      max_concurrent_requests: LANE,
      max_queue_depth: DEPTH,
      max_wait_ms: 10_000,
    }),
  ],
})
const pool = new Pool(weir.origin, { connections: 4096 })
const headers = { authorization: `Bearer ${weir.key}`, 'content-type': 'application/json' }

try {
  console.log(`${LANE} concurrent requests of ${ENGINE_MS} ms: at most ${capacity} per second; queue of ${DEPTH}\n`)
  await atRate(capacity, 3)
  const quiet = await atRate(capacity / 10, Math.min(10, seconds))
  report(`quiet: ${capacity / 10} requests per second`, quiet)
  const busy = await atConcurrency(LANE, Math.min(20, seconds))
  report(`busy: ${LANE} callers, each sending one request after another`, busy)
  const overload = await atRate(capacity * OVERLOAD, seconds)
  report(`overload: ${capacity * OVERLOAD} requests per second for ${seconds} s`, overload)
  const share = perSecond(overload) / perSecond(busy)
  const refused = overload.filter(({ code }) => code === 'queue_full').map(({ ms }) => ms)
  figure('completed', { unit: '%', digits: 1 }, [share * 100])
  figure('refused.p99', { unit: 'ms', digits: 1 }, [quantile(refused, 0.99)])
  console.log(`completed under overload: ${(share * 100).toFixed(1)} % of the busy lane's throughput (target: 95)`)
  console.log(`queue_full: p99 ${quantile(refused, 0.99).toFixed(1)} ms (target: below 50)`)
} finally {
  await pool.close()
  await weir.stop()
  engine.kill()
}

/** Sends requests at a fixed rate, whether or not earlier ones have been answered. */
async function atRate(rate: number, forSeconds: number): Promise<readonly Outcome[]> {
  const running: Promise<Outcome>[] = []
  const startedAtMs = performance.now()
  for (;;) {
    const elapsedMs = performance.now() - startedAtMs
    if (elapsedMs >= forSeconds * 1000) break
    while (running.length < (elapsedMs / 1000) * rate) running.push(send(startedAtMs))
    await sleep(1)
  }
  return (await Promise.all(running)).filter(({ endedAtMs }) => endedAtMs <= forSeconds * 1000)
}

/** As many callers as the lane has room for: no request waits, and no slot stays empty for long. */
async function atConcurrency(callers: number, forSeconds: number): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = []
  const startedAtMs = performance.now()
  const keepAsking = async (): Promise<void> => {
    while (performance.now() - startedAtMs < forSeconds * 1000) outcomes.push(await send(startedAtMs))
  }
  await Promise.all(Array.from({ length: callers }, keepAsking))
  return outcomes
}

async function send(startedAtMs: number): Promise<Outcome> {
  const sentAtMs = performance.now()
  const path = '/api/v1/chat/completions'
  const response = await pool.request({ method: 'POST', path, headers, body })
  const { error } = (await response.body.json()) as { error?: { code: string } }
  const nowMs = performance.now()
  return { status: response.statusCode, code: error?.code, ms: nowMs - sentAtMs, endedAtMs: nowMs - startedAtMs }
}

function perSecond(outcomes: readonly Outcome[]): number {
  const completed = outcomes.filter(({ status }) => status === 200)
  const lastMs = completed.reduce((last, { endedAtMs }) => Math.max(last, endedAtMs), 0)
  return completed.length / (lastMs / 1000)
}

function report(title: string, outcomes: readonly Outcome[]): void {
  console.log(title)
  const kinds = Map.groupBy(outcomes, ({ status, code }) => (code === undefined ? String(status) : `${status} ${code}`))
  for (const [kind, some] of kinds) {
    const times = some.map(({ ms }) => ms)
    const figures = [0.5, 0.99, 1].map((share) => quantile(times, share).toFixed(1).padStart(9)).join('')
    console.log(`  ${kind.padEnd(24)}${String(some.length).padStart(8)}   ms p50, p99, max${figures}`)
  }
  console.log(`  completed per second    ${perSecond(outcomes).toFixed(1).padStart(8)}\n`)
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}
