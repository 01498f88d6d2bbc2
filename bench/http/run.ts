import { Pool } from 'undici'
import { figure, MEBIBYTES, MICROSECONDS, MILLISECONDS, RATIO } from '../figures.ts'
import { cpuMicroseconds, forked, median } from '../measuring.ts'
import { chatCall, paced, saturated, type Target } from './load.ts'
import { otherProxies } from './other-proxies.ts'
import { benchModel, residentBytes, startWeir } from '../weir-process.ts'

/**
 * Calls the engine directly, through a minimal proxy, through other proxies, and through Weir with everything on,
 * alternating in one run. nginx, Caddy and HAProxy are measured where they are installed; `peers` has other gateways.
 * Machines differ and are noisy, so the figure that matters is the ratio of CPU time per request. It is measured twice:
 * at one fixed rate, at which each process is mostly idle and pays for waking up, and as fast as each can go.
 */
const ROUNDS = 5
const RATE = 500
const AT_A_TIME = 128
type Pace = 'paced' | 'saturated'
const requests = Number(process.argv[2] ?? 2000)
const memoryRequests = Number(process.argv[3] ?? 100_000)

const program = (name: string): URL => new URL(name, import.meta.url)
const engine = await forked(program('engine.ts'))
const bare = await forked(program('bare-proxy.ts'), String(engine.port))
const others = await otherProxies(engine.port)
const limits = { token_budget: 10_000_000, max_concurrent_requests: 1000 }
const weir = await startWeir({ models: [benchModel(`http://127.0.0.1:${engine.port}/v1`, limits)] })
try {
  const plain = { 'content-type': 'application/json' }
  const target = (
    name: string,
    pid: number | undefined,
    origin: string,
    path: string,
    headers: Record<string, string>,
  ) => ({
    name,
    pid: pid ?? 0,
    pool: new Pool(origin, { connections: AT_A_TIME }),
    headers,
    path,
  })
  const path = '/v1/chat/completions'
  const targets: Target[] = [
    target('direct engine', engine.pid, `http://127.0.0.1:${engine.port}`, path, plain),
    target('bare proxy', bare.pid, `http://127.0.0.1:${bare.port}`, path, plain),
    ...others.map((it) => target(it.name, it.pid, it.origin, it.path, { ...plain, ...it.headers })),
    target('Weir', weir.pid, weir.origin, `/api${path}`, { ...plain, authorization: `Bearer ${weir.key}` }),
  ]
  for (const stream of [false, true]) {
    const able = await thatServe(targets, async (it) => void (await load(it, stream, 1, 'saturated')))
    for (const pace of ['paced', 'saturated'] as const) await compare(able, stream, pace)
  }
  const last = targets.at(-1)
  if (last && memoryRequests > 0) await memory(last)
  for (const { pool } of targets) await pool.close()
} finally {
  await Promise.all(others.map((it) => it.stop()))
  await weir.stop()
  engine.kill()
  bare.kill()
}

/** Another proxy may not take what this bench sends, or break off in the middle of it. Weir must not. */
async function thatServe(
  targets: readonly Target[],
  use: (target: Target) => Promise<void>,
): Promise<readonly Target[]> {
  const able: Target[] = []
  for (const target of targets) {
    try {
      await use(target)
      able.push(target)
    } catch (error) {
      if (target.name === 'Weir' || target.name === 'bare proxy') throw error
      console.log(`${(error as Error).message.split('\n', 1)[0]?.slice(0, 200)}: left out.`)
    }
  }
  return able
}

async function compare(all: readonly Target[], stream: boolean, pace: Pace): Promise<void> {
  const samples = new Map(all.map(({ name }) => [name, [] as { cpu: number; wall: number; latency: number }[]]))
  let targets = await thatServe(all, async (target) => void (await load(target, stream, requests, pace)))
  for (let round = 0; round < ROUNDS; round++) {
    targets = await thatServe(targets, async (target) => {
      samples.get(target.name)?.push(await load(target, stream, requests, pace))
    })
  }
  const how = pace === 'paced' ? `${RATE} per second` : `${AT_A_TIME} at a time`
  console.log(`\n${stream ? 'SSE, 64 tokens' : 'Whole answer'}: ${requests} requests × ${ROUNDS}, ${how}`)
  console.log('                 CPU µs/request   ratio to bare   requests/s   median ms')
  const base = median((samples.get('bare proxy') ?? []).map(({ cpu }) => cpu))
  for (const { name } of targets) {
    const seen = samples.get(name) ?? []
    const cpu = median(seen.map((it) => it.cpu))
    const key = `${stream ? 'stream' : 'whole'}.${pace}.${name}`
    figure(
      `${key}.cpu`,
      MICROSECONDS,
      seen.map((it) => it.cpu),
    )
    figure(
      `${key}.ratio`,
      RATIO,
      seen.map((it) => it.cpu / base),
    )
    figure(
      `${key}.latency`,
      MILLISECONDS,
      seen.map((it) => it.latency),
    )
    const cells = [cpu.toFixed(0), (cpu / base).toFixed(2), (1 / median(seen.map((it) => it.wall))).toFixed(0)]
    console.log(
      name.padEnd(16) +
        cells.map((cell) => cell.padStart(15)).join('') +
        median(seen.map((it) => it.latency))
          .toFixed(2)
          .padStart(12),
    )
  }
}

async function memory(target: Target): Promise<void> {
  console.log(`\nMemory of Weir over ${memoryRequests} requests (MiB resident):`)
  const readings: number[] = []
  for (let done = 0; done < memoryRequests; done += memoryRequests / 10) {
    await load(target, false, memoryRequests / 10, 'saturated')
    readings.push(Math.round(residentBytes(target.pid) / 2 ** 20))
  }
  figure('memory', MEBIBYTES, readings)
  console.log(readings.join('  '))
}

async function load(target: Target, stream: boolean, count: number, pace: Pace) {
  const latencies: number[] = []
  const cpuBefore = cpuMicroseconds(target.pid)
  const started = performance.now()
  const one = async (): Promise<void> => void latencies.push(await chatCall(target, stream))
  if (pace === 'paced') await paced(one, count, RATE)
  else await saturated(one, count, AT_A_TIME)
  return {
    cpu: (cpuMicroseconds(target.pid) - cpuBefore) / count,
    wall: (performance.now() - started) / 1000 / count,
    latency: median(latencies),
  }
}
