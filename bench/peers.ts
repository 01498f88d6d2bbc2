import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Pool } from 'undici'
import { figure, finding, MEBIBYTES, MILLISECONDS, RATIO } from './figures.ts'
import { chatCall, during, type Target } from './http/load.ts'
import { otherProxies } from './http/other-proxies.ts'
import { peers, peerVersions } from './http/peers.ts'
import { cpuMicroseconds, forked, median } from './measuring.ts'
import { benchModel, residentBytes, startWeir } from './weir-process.ts'

/**
 * What a user might run instead: Portkey and LiteLLM beside Weir and a bare proxy, in front of the same scripted engine, in
 * one run. Measures the memory of each at rest, and for a small whole answer and for a stream of 64 tokens the CPU time
 * with several callers and the latency with one. Compare the ratios: machines differ and are noisy.
 *
 * Portkey comes from npm, and LiteLLM from PyPI, which takes Python 3.10 or later and a few minutes the first time. Both are
 * installed into ~/.cache/weir/peers, or WEIR_PEERS_DIR. One that cannot be installed is left out.
 *
 * npm run bench -- peers [--seconds 3] [--rounds 3] [--callers 8] [--json]
 */
const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '3' },
    rounds: { type: 'string', default: '3' },
    callers: { type: 'string', default: '8' },
    json: { type: 'boolean', default: false },
  },
})
const [seconds, rounds, callers] = [
  atMost('seconds', values.seconds, 60),
  atMost('rounds', values.rounds, 20),
  atMost('callers', values.callers, 256),
]
const SETTLE_MS = 5000
const WARM_MS = 5000

interface Sample {
  readonly cpuUs: number
  readonly perSecond: number
  readonly latencyMs: number
}

interface Measured {
  readonly name: string
  readonly idleMiB: number
  readonly whole: Sample[]
  readonly stream: Sample[]
  /** What it did not answer. */
  readonly broken: Set<'whole' | 'stream'>
}

// Whatever was started ends when this process exits, which a signal alone would not do.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))

const program = (name: string): URL => new URL(`http/${name}`, import.meta.url)
const engine = await forked(program('engine.ts'))
const bare = await forked(program('bare-proxy.ts'), String(engine.port))
const others = await otherProxies(engine.port, peers)
const limits = { token_budget: 10_000_000, max_concurrent_requests: 1000 }
const fresh = await startWeir({ models: [benchModel(`http://127.0.0.1:${engine.port}/v1`, limits)] })
// A first start after a change of the code compiles it, which takes memory.
const weir = await fresh.restarted(() => {})
try {
  await measureAll()
} finally {
  await Promise.all(others.map((it) => it.stop()))
  await weir.stop()
  engine.kill()
  bare.kill()
}

async function measureAll(): Promise<void> {
  const path = '/v1/chat/completions'
  const targets = [
    targetOf('bare proxy', bare.pid, `http://127.0.0.1:${bare.port}`, path, {}),
    targetOf('Weir', weir.pid, weir.origin, `/api${path}`, { authorization: `Bearer ${weir.key}` }),
    ...others.map((it) => targetOf(it.name, it.pid, it.origin, it.path, it.headers)),
  ]
  console.error(`${targets.map(({ name }) => name).join(', ')}: about ${Math.ceil(minutes(targets.length))} minutes.`)
  await sleep(SETTLE_MS)
  const measured: Measured[] = []
  for (const target of targets) {
    const idleMiB = Math.round(residentBytes(target.pid) / 2 ** 20)
    measured.push({ name: target.name, idleMiB, whole: [], stream: [], broken: new Set() })
  }
  for (let round = 0; round < rounds; round++) {
    for (const [index, target] of targets.entries()) {
      for (const kind of ['whole', 'stream'] as const) await measure(target, kind, measured[index]!, round === 0)
    }
  }
  print(measured)
  for (const { pool } of targets) await pool.close()
}

/** A peer may not answer what this bench asks, or break off in the middle of it. Weir must. */
async function measure(target: Target, kind: 'whole' | 'stream', into: Measured, isFirst: boolean): Promise<void> {
  if (into.broken.has(kind)) return
  const isStream = kind === 'stream'
  try {
    if (isFirst) await call(target, isStream, WARM_MS, callers)
    into[kind].push(await sample(target, isStream))
  } catch (error) {
    if (target.name === 'Weir' || target.name === 'bare proxy') throw error
    console.error(`It is left out of "${kind}": ${(error as Error).message.slice(0, 200)}`)
    into.broken.add(kind)
  }
}

function minutes(targets: number): number {
  return (targets * (2 * WARM_MS + rounds * 4 * seconds * 1000)) / 60_000
}

function targetOf(
  name: string,
  pid: number,
  origin: string,
  path: string,
  headers: Readonly<Record<string, string>>,
): Target {
  const pool = new Pool(origin, { connections: callers })
  return { name, pid, pool, path, headers: { 'content-type': 'application/json', ...headers } }
}

async function sample(target: Target, isStream: boolean): Promise<Sample> {
  const alone = await call(target, isStream, seconds * 1000, 1)
  const together = await call(target, isStream, seconds * 1000, callers)
  return { cpuUs: together.cpuUs, perSecond: together.perSecond, latencyMs: alone.latencyMs }
}

async function call(target: Target, isStream: boolean, ms: number, atATime: number): Promise<Sample> {
  const latencies: number[] = []
  const cpuBefore = cpuMicroseconds(target.pid)
  const started = performance.now()
  await during(ms, async () => void latencies.push(await chatCall(target, isStream)), atATime)
  const count = latencies.length
  return {
    cpuUs: (cpuMicroseconds(target.pid) - cpuBefore) / count,
    perSecond: (count * 1000) / (performance.now() - started),
    latencyMs: median(latencies),
  }
}

/** The least of the rounds: everything else on the machine only adds to it. */
function leastOf(samples: readonly Sample[]): Sample | null {
  if (samples.length === 0) return null
  return {
    cpuUs: Math.round(Math.min(...samples.map((it) => it.cpuUs))),
    perSecond: Math.round(Math.max(...samples.map((it) => it.perSecond))),
    latencyMs: Number(Math.min(...samples.map((it) => it.latencyMs)).toFixed(2)),
  }
}

function print(measured: readonly Measured[]): void {
  const rows = measured.map(({ name, idleMiB, broken, whole, stream }) => ({
    name,
    idleMiB,
    whole: broken.has('whole') ? null : leastOf(whole),
    stream: broken.has('stream') ? null : leastOf(stream),
  }))
  for (const { name, idleMiB, broken, whole, stream } of measured) {
    figure(`${name}.idle`, MEBIBYTES, [idleMiB])
    for (const [kind, samples] of Object.entries({ whole, stream })) {
      if (broken.has(kind as 'whole' | 'stream')) finding(`${name}.${kind}.ratio`, 'does not answer')
      else publishSamples(`${name}.${kind}`, samples, rows[0]?.[kind as 'whole' | 'stream']?.cpuUs)
    }
  }
  for (const [name, version] of Object.entries(peerVersions)) {
    if (measured.some((it) => it.name === name)) finding(`${name}.version`, version)
  }
  if (values.json) {
    console.log(JSON.stringify({ seconds, rounds, callers, targets: rows }))
    return
  }
  const base = rows[0]
  for (const kind of ['whole', 'stream'] as const) {
    const what = kind === 'whole' ? 'Whole answer of 64 tokens' : 'Stream of 64 tokens'
    console.log(`\n${what}: CPU with ${callers} callers, latency with one; least of ${rounds} rounds`)
    console.log(
      `${''.padEnd(14)}${['CPU µs', '× bare', 'a second', 'ms', 'idle MiB'].map((it) => it.padStart(10)).join('')}`,
    )
    for (const { name, idleMiB, [kind]: best } of rows) {
      const ratio = best && (best.cpuUs / (base?.[kind]?.cpuUs ?? Number.NaN)).toFixed(2)
      const shown = best ? [best.cpuUs, ratio, best.perSecond, best.latencyMs] : ['–', '–', '–', '–']
      const cells = [...shown, idleMiB].map((it) => String(it).padStart(10))
      console.log(name.padEnd(14) + cells.join(''))
    }
  }
}

function publishSamples(key: string, samples: readonly Sample[], base = Number.NaN): void {
  figure(
    `${key}.ratio`,
    RATIO,
    samples.map((it) => it.cpuUs / base),
  )
  figure(
    `${key}.latency`,
    MILLISECONDS,
    samples.map((it) => it.latencyMs),
  )
}

function atMost(name: string, given: string, most: number): number {
  const value = Number(given)
  if (Number.isInteger(value) && value >= 1 && value <= most) return value
  console.error(`--${name} must be a whole number from 1 to ${most}.`)
  return process.exit(2)
}
