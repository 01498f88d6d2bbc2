import { fork, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Pool } from 'undici'

/**
 * The largest batch of embeddings (2,048 texts, 1,024 dimensions, base64: 11 MB of answer) through the barest
 * proxy and through Weir, in turns in one run. The figure to look at is the ratio of CPU time per batch.
 */
const ROUNDS = 7
const CONCURRENCY = 2
const [enginePort, barePort, weirPort, adminPort] = [18_940, 18_941, 18_942, 18_943]
const batches = Number(process.argv[2] ?? 40)
const folder = mkdtempSync(join(tmpdir(), 'weir-bench-'))
const children: ChildProcess[] = []
const body = JSON.stringify({
  model: 'bench/embedder',
  input: Array.from({ length: 2048 }, (_, index) => `Text ${index} about the river and its weir.`),
  encoding_format: 'base64',
})

interface Target {
  readonly name: string
  readonly pid: number
  readonly pool: Pool
  readonly path: string
  readonly headers: Record<string, string>
}

try {
  await forked('embeddings-engine.ts', String(enginePort))
  const bare = await forked('http/bare-proxy.ts', String(barePort), String(enginePort), '/v1/embeddings')
  const weir = await startWeir()
  const plain = { 'content-type': 'application/json' }
  const targets: Target[] = [
    { name: 'bare proxy', pid: bare.pid ?? 0, pool: poolOf(barePort), path: '/v1/embeddings', headers: plain },
    {
      name: 'Weir',
      pid: weir.child.pid ?? 0,
      pool: poolOf(weirPort),
      path: '/api/v1/embeddings',
      headers: { ...plain, authorization: `Bearer ${weir.key}` },
    },
  ]
  await compare(targets)
  for (const { pool } of targets) await pool.close()
} finally {
  for (const child of children) child.kill()
  rmSync(folder, { recursive: true, force: true })
}

async function compare(targets: readonly Target[]): Promise<void> {
  const samples = new Map(targets.map(({ name }) => [name, [] as { cpu: number; wall: number }[]]))
  for (const target of targets) await load(target)
  for (let round = 0; round < ROUNDS; round++) {
    for (const target of targets) samples.get(target.name)?.push(await load(target))
  }
  console.log(`\nEmbeddings, 2,048 × 1,024 in base64: ${batches} batches × ${ROUNDS}, ${CONCURRENCY} at a time`)
  console.log('                 CPU ms/batch   ratio to bare   batches/s')
  const base = median((samples.get('bare proxy') ?? []).map(({ cpu }) => cpu))
  for (const { name } of targets) {
    const seen = samples.get(name) ?? []
    const cpu = median(seen.map((it) => it.cpu))
    const cells = [cpu.toFixed(1), (cpu / base).toFixed(2), (1 / median(seen.map((it) => it.wall))).toFixed(0)]
    console.log(name.padEnd(16) + cells.map((cell) => cell.padStart(13)).join(''))
  }
}

async function load(target: Target): Promise<{ cpu: number; wall: number }> {
  const cpuBefore = cpuMs(target.pid)
  const started = performance.now()
  let left = batches
  const worker = async (): Promise<void> => {
    while (left-- > 0) {
      const { path, headers } = target
      const response = await target.pool.request({ method: 'POST', path, headers, body })
      const bytes = (await response.body.bytes()).length
      if (response.statusCode !== 200 || bytes < 2048 * 5464) throw new Error(`${target.name}: ${response.statusCode}`)
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, worker))
  return { cpu: (cpuMs(target.pid) - cpuBefore) / batches, wall: (performance.now() - started) / 1000 / batches }
}

async function startWeir(): Promise<{ child: ChildProcess; key: string }> {
  const config = join(folder, 'weir.yaml')
  const model = {
    id: 'bench/embedder',
    categories: ['embedding'],
    context_length: 8192,
    pricing: { input_per_million: '0.02' },
    serverless: {
      engine: { kind: 'vllm', urls: [`http://127.0.0.1:${enginePort}/v1`], model: 'engine-name' },
      limits: { token_budget: 10_000_000, max_concurrent_requests: 100 },
    },
  }
  writeFileSync(
    config,
    JSON.stringify({
      server: { port: weirPort, admin_port: adminPort },
      data_dir: join(folder, 'data'),
      rate_limit: { requests_per_minute: 100_000_000 },
      models: [model],
    }),
  )
  const main = new URL('../src/main.ts', import.meta.url).pathname
  const child = spawn(process.execPath, [main, 'serve', '--config', config], {
    stdio: ['ignore', 'pipe', openSync(join(folder, 'weir.log'), 'w')],
  })
  children.push(child)
  let text = ''
  for await (const chunk of child.stdout ?? []) {
    text += String(chunk)
    const key = /weir_[0-9A-Za-z]{49}/.exec(text)?.[0]
    if (key) return { child, key }
  }
  throw new Error(`Weir did not start: ${readFileSync(join(folder, 'weir.log'), 'utf8')}`)
}

async function forked(file: string, ...args: string[]): Promise<ChildProcess> {
  const child = fork(new URL(file, import.meta.url), args)
  children.push(child)
  await once(child, 'message')
  return child
}

function poolOf(port: number): Pool {
  return new Pool(`http://127.0.0.1:${port}`, { connections: CONCURRENCY })
}

/** User and system time of a process, from /proc: the clock ticks 100 times a second. */
function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * 10
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}
