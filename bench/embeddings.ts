import { Pool } from 'undici'
import { figure, RATIO } from './figures.ts'
import { cpuMicroseconds, forked, median } from './measuring.ts'
import { startWeir } from './weir-process.ts'

/**
 * Sends the largest batch of embeddings (2,048 texts, 1,024 dimensions, base64: an 11 MB answer) through a minimal
 * proxy and through Weir, alternating in one run. The figure that matters is the ratio of CPU time per batch.
 */
const ROUNDS = 7
const CONCURRENCY = 2
const batches = Number(process.argv[2] ?? 40)
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

const program = (name: string): URL => new URL(name, import.meta.url)
const engine = await forked(program('embeddings-engine.ts'))
const bare = await forked(program('http/bare-proxy.ts'), String(engine.port), '/v1/embeddings')
const model = {
  id: 'bench/embedder',
  categories: ['embedding'],
  context_length: 8192,
  pricing: { input_per_million: '0.02' },
  serverless: {
    engine: { kind: 'vllm', urls: [`http://127.0.0.1:${engine.port}/v1`], model: 'engine-name' },
    limits: { token_budget: 10_000_000, max_concurrent_requests: 100 },
  },
}
const weir = await startWeir({ models: [model] })
try {
  const plain = { 'content-type': 'application/json' }
  const targets: Target[] = [
    {
      name: 'bare proxy',
      pid: bare.pid,
      pool: poolOf(`http://127.0.0.1:${bare.port}`),
      path: '/v1/embeddings',
      headers: plain,
    },
    {
      name: 'Weir',
      pid: weir.pid,
      pool: poolOf(weir.origin),
      path: '/api/v1/embeddings',
      headers: { ...plain, authorization: `Bearer ${weir.key}` },
    },
  ]
  await compare(targets)
  for (const { pool } of targets) await pool.close()
} finally {
  await weir.stop()
  engine.kill()
  bare.kill()
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
    figure(
      `${name}.ratio`,
      RATIO,
      seen.map((it) => it.cpu / base),
    )
    const cells = [cpu.toFixed(1), (cpu / base).toFixed(2), (1 / median(seen.map((it) => it.wall))).toFixed(0)]
    console.log(name.padEnd(16) + cells.map((cell) => cell.padStart(13)).join(''))
  }
}

async function load(target: Target): Promise<{ cpu: number; wall: number }> {
  const cpuBefore = cpuMicroseconds(target.pid) / 1000
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
  return {
    cpu: (cpuMicroseconds(target.pid) / 1000 - cpuBefore) / batches,
    wall: (performance.now() - started) / 1000 / batches,
  }
}

function poolOf(origin: string): Pool {
  return new Pool(origin, { connections: CONCURRENCY })
}
