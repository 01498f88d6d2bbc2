import { fork, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'undici'

/**
 * npm run bench: the engine called directly, through the barest proxy, and through Weir with everything
 * on, in turns in one run. Machines differ and are noisy, so the figure to look at is the ratio of CPU
 * time per request. It is taken twice: at one rate for all, at which each process is idle for most of the time
 * and pays for being woken, and as fast as each can.
 */
const ROUNDS = 5
const RATE = 500
const AT_A_TIME = 128
type Pace = 'paced' | 'saturated'
const [enginePort, barePort, weirPort, adminPort] = [18_910, 18_911, 18_912, 18_913]
const requests = Number(process.argv[2] ?? 2000)
const memoryRequests = Number(process.argv[3] ?? 100_000)
const folder = mkdtempSync(join(tmpdir(), 'weir-bench-'))
const children: ChildProcess[] = []

interface Target {
  readonly name: string
  readonly pid: number
  readonly pool: Pool
  readonly headers: Record<string, string>
  readonly path: string
}

try {
  const engine = await forked('engine.ts', String(enginePort))
  const bare = await forked('bare-proxy.ts', String(barePort), String(enginePort))
  const weir = await startWeir()
  const plain = { 'content-type': 'application/json' }
  const target = (name: string, child: ChildProcess, port: number, path: string, headers: Record<string, string>) => ({
    name,
    pid: child.pid ?? 0,
    pool: new Pool(`http://127.0.0.1:${port}`, { connections: AT_A_TIME }),
    headers,
    path,
  })
  const targets: Target[] = [
    target('direct engine', engine, enginePort, '/v1/chat/completions', plain),
    target('bare proxy', bare, barePort, '/v1/chat/completions', plain),
    target('Weir', weir.child, weirPort, '/api/v1/chat/completions', { ...plain, authorization: `Bearer ${weir.key}` }),
  ]
  for (const stream of [false, true]) {
    for (const pace of ['paced', 'saturated'] as const) await compare(targets, stream, pace)
  }
  const [, , last] = targets
  if (last && memoryRequests > 0) await memory(last)
  for (const { pool } of targets) await pool.close()
} finally {
  for (const child of children) child.kill()
  rmSync(folder, { recursive: true, force: true })
}

async function compare(targets: readonly Target[], stream: boolean, pace: Pace): Promise<void> {
  const samples = new Map(targets.map(({ name }) => [name, [] as { cpu: number; wall: number; latency: number }[]]))
  for (const target of targets) await load(target, stream, requests, pace)
  for (let round = 0; round < ROUNDS; round++) {
    for (const target of targets) samples.get(target.name)?.push(await load(target, stream, requests, pace))
  }
  const how = pace === 'paced' ? `${RATE} a second` : `${AT_A_TIME} at a time`
  console.log(`\n${stream ? 'SSE, 64 tokens' : 'Whole answer'}: ${requests} requests × ${ROUNDS}, ${how}`)
  console.log('                 CPU µs/request   ratio to bare   requests/s   median ms')
  const base = median((samples.get('bare proxy') ?? []).map(({ cpu }) => cpu))
  for (const { name } of targets) {
    const seen = samples.get(name) ?? []
    const cpu = median(seen.map((it) => it.cpu))
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
  const readings: string[] = []
  for (let done = 0; done < memoryRequests; done += memoryRequests / 10) {
    await load(target, false, memoryRequests / 10, 'saturated')
    readings.push((residentBytes(target.pid) / 2 ** 20).toFixed(0))
  }
  console.log(readings.join('  '))
}

async function load(target: Target, stream: boolean, count: number, pace: Pace) {
  const body = JSON.stringify({
    model: 'bench/model',
    messages: [
      { role: 'system', content: 'You are a helpful assistant. '.repeat(8) },
      { role: 'user', content: 'Tell me about the river and its weir. '.repeat(18) },
    ],
    ...(stream ? { stream: true } : {}),
  })
  const latencies: number[] = []
  const cpuBefore = cpuMicroseconds(target.pid)
  const started = performance.now()
  const one = async (): Promise<void> => {
    const begun = performance.now()
    const { path, headers } = target
    const response = await target.pool.request({ method: 'POST', path, headers, body, headersTimeout: 30_000 })
    const text = await response.body.text()
    if (response.statusCode !== 200 || (stream && !text.includes('[DONE]'))) {
      throw new Error(`${target.name}: ${response.statusCode} ${text}`)
    }
    latencies.push(performance.now() - begun)
  }
  if (pace === 'paced') await paced(one, count, started)
  else await saturated(one, count)
  return {
    cpu: (cpuMicroseconds(target.pid) - cpuBefore) / count,
    wall: (performance.now() - started) / 1000 / count,
    latency: median(latencies),
  }
}

async function paced(one: () => Promise<void>, count: number, started: number): Promise<void> {
  const running: Promise<void>[] = []
  for (let sent = 0; sent < count;) {
    const due = Math.min(count, Math.ceil(((performance.now() - started) / 1000) * RATE))
    while (sent < due) {
      running.push(one())
      sent++
    }
    await sleep(1)
  }
  await Promise.all(running)
}

async function saturated(one: () => Promise<void>, count: number): Promise<void> {
  let left = count
  const caller = async (): Promise<void> => {
    while (left > 0) {
      left--
      await one()
    }
  }
  await Promise.all(Array.from({ length: AT_A_TIME }, caller))
}

async function startWeir(): Promise<{ child: ChildProcess; key: string }> {
  const config = join(folder, 'weir.yaml')
  writeFileSync(
    config,
    JSON.stringify({
      server: { port: weirPort, admin_port: adminPort },
      data_dir: join(folder, 'data'),
      rate_limit: { requests_per_minute: 100_000_000 },
      models: [
        {
          id: 'bench/model',
          categories: ['llm'],
          context_length: 131_072,
          pricing: { input_per_million: '0.20', output_per_million: '0.60' },
          serverless: {
            engine: { kind: 'openai', urls: [`http://127.0.0.1:${enginePort}/v1`], model: 'engine-name' },
            limits: { token_budget: 10_000_000, max_concurrent_requests: 1000 },
          },
        },
      ],
    }),
  )
  const main = new URL('../../src/main.ts', import.meta.url).pathname
  // As npm start runs it.
  const child = spawn(process.execPath, ['--max-semi-space-size=16', main, 'serve', '--config', config], {
    stdio: ['ignore', 'pipe', openSync(join(folder, 'weir.log'), 'w')],
  })
  children.push(child)
  let text = ''
  for await (const chunk of child.stdout ?? []) {
    text += String(chunk)
    const key = /weir_[0-9A-Za-z]{49}/.exec(text)?.[0]
    if (key) return { child, key }
  }
  throw new Error('Weir did not start')
}

async function forked(file: string, ...args: string[]): Promise<ChildProcess> {
  const child = fork(new URL(file, import.meta.url), args)
  children.push(child)
  await once(child, 'message')
  return child
}

/** User and system time of a process, from /proc: the clock ticks 100 times a second. */
function cpuMicroseconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * 10_000
}

function residentBytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}
