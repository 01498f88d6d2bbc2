/**
 * Measures admission through Redis: pairs of admit and release per second, and what one admission takes at 500 a second.
 * It starts its own redis-server on loopback. The CPU time of a pair tells what is possible where the machine is busy with
 * other work too.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { figure } from './figures.ts'
import type { LaneLimits } from '../src/queue/lane.ts'
import type { Admission } from '../src/queue/admission.ts'
import { startRedis } from '../test/support/redis-server.ts'
import { settledEpoch, testReplica } from '../test/support/redis-replica.ts'
import { eventually } from '../test/support/waiting.ts'

const limits: LaneLimits = {
  tokenBudget: 1_000_000,
  maxConcurrentRequests: 256,
  maxQueueDepth: 10_000,
  maxWaitMs: 120_000,
}
const SECONDS = 5

const server = await startRedis()
const client = new Redis(server.url)
const replica = testReplica(server.url, { leaseMs: 5000 })
const { admission } = replica
admission.setLanes(new Map([['lane', limits]]))
await settledEpoch(replica)
await eventually('it has joined', () => admission.state() === 'joined')

/** One admission and its release; returns how long the decision took. */
function pair(lanes: Admission): Promise<number> {
  const startedAtMs = performance.now()
  return new Promise((resolve) => {
    lanes.enter({ lane: 'lane', workspace: 'acme', cost: 1000 }, (_decision, ticket) => {
      resolve(performance.now() - startedAtMs)
      ticket.leave()
    })
  })
}

/** CPU time that this process and Redis have used, in microseconds. */
async function cpuMicros(): Promise<{ own: number; redis: number }> {
  const { user, system } = process.cpuUsage()
  const info = await client.info('cpu')
  const seconds = [...info.matchAll(/^used_cpu_(?:user|sys):([\d.]+)/gm)].reduce(
    (sum, [, part]) => sum + Number(part),
    0,
  )
  return { own: user + system, redis: seconds * 1_000_000 }
}

async function throughput(callers: number): Promise<void> {
  const before = await cpuMicros()
  const until = performance.now() + SECONDS * 1000
  let pairs = 0
  await Promise.all(
    Array.from({ length: callers }, async () => {
      while (performance.now() < until) {
        await pair(admission)
        pairs += 1
      }
    }),
  )
  const after = await cpuMicros()
  figure(`pairs.${callers}`, { unit: 'a second', digits: 0 }, [pairs / SECONDS])
  const each = (micros: number): string => `${(micros / pairs).toFixed(0)} µs`
  const cpu = `CPU for each: ${each(after.own - before.own)} here, ${each(after.redis - before.redis)} in Redis`
  console.log(
    `${callers} callers: ${Math.round(pairs / SECONDS).toLocaleString('en-AU')} pairs of admit and release/s; ${cpu}`,
  )
}

async function latency(perSecond: number): Promise<void> {
  const taken: Promise<number>[] = []
  const startedAtMs = performance.now()
  while (performance.now() - startedAtMs < SECONDS * 1000) {
    const due = ((performance.now() - startedAtMs) / 1000) * perSecond
    while (taken.length < due) taken.push(pair(admission))
    await sleep(1)
  }
  const sorted = (await Promise.all(taken)).toSorted((one, other) => one - other)
  const at = (part: number): number => sorted[Math.floor(sorted.length * part)] ?? 0
  figure('latency.p50', { unit: 'ms', digits: 1 }, [at(0.5)])
  figure('latency.p99', { unit: 'ms', digits: 1 }, [at(0.99)])
  console.log(`at ${perSecond}/s: p50 ${at(0.5).toFixed(2)} ms, p99 ${at(0.99).toFixed(2)} ms`)
}

await latency(500)
await throughput(64)
await throughput(1000)
await replica.close()
client.disconnect()
await server.remove()
