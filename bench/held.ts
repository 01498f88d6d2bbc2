/**
 * Measures the resident memory of 10,000 queued requests of 2 KB, each on its own connection, relative to the idle
 * process. A bare node:http server that holds the same requests shows the runtime's own share.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'undici'
import { figure, MEBIBYTES } from './figures.ts'
import { benchModel, residentBytes, startWeir } from './weir-process.ts'

const callers = Number(process.argv[2] ?? 10_000)
const BODY_BYTES = 2048
const WARM_UP_REQUESTS = 5000
const SETTLE_MS = 5000
const PATH = '/api/v1/chat/completions'
const quickAnswer = JSON.stringify({
  choices: [{ index: 0, message: { role: 'assistant', content: 'Yes.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 500, completion_tokens: 1, total_tokens: 501 },
})

/** A server that answers requests for bench/quick and never answers those for bench/held. */
interface Target {
  readonly name: string
  readonly origin: string
  readonly pid: number
  readonly headers: Readonly<Record<string, string>>
  held(pool: Pool): Promise<number>
  stop(): Promise<unknown>
}

console.log(`${callers} waiting requests of ${BODY_BYTES} bytes (MiB resident, KB per request)\n`)
console.log(`${''.padEnd(12)}${['idle', 'held', 'each', 'all left'].map((text) => text.padStart(10)).join('')}`)
for (const start of [startBare, startHoldingWeir]) {
  const target = await start()
  const sockets: Socket[] = []
  try {
    await measure(target, sockets)
  } finally {
    for (const socket of sockets) socket.destroy()
    await target.stop()
  }
}

async function measure(target: Target, sockets: Socket[]): Promise<void> {
  const pool = new Pool(target.origin, { connections: 32 })
  await warmUp(target, pool)
  await sleep(SETTLE_MS)
  const idle = residentBytes(target.pid)
  await sendAll(target, sockets)
  while ((await target.held(pool)) < callers) await sleep(100)
  await sleep(SETTLE_MS)
  const full = residentBytes(target.pid)
  for (const socket of sockets) socket.destroy()
  await sleep(SETTLE_MS)
  const afterwards = residentBytes(target.pid)
  await pool.close()
  const mebibytes = (bytes: number): string => (bytes / 2 ** 20).toFixed(0)
  const each = (full - idle) / callers / 1024
  figure(`${target.name}.idle`, MEBIBYTES, [idle / 2 ** 20])
  figure(`${target.name}.each`, { unit: 'KB', digits: 0 }, [each])
  const cells = [mebibytes(idle), mebibytes(full), each.toFixed(1), mebibytes(afterwards)]
  console.log(target.name.padEnd(12) + cells.map((cell) => cell.padStart(10)).join(''))
}

/** Warms up, so that compiled code and a growing heap do not count as memory of waiting requests. */
async function warmUp({ headers }: Target, pool: Pool): Promise<void> {
  const body = bodyFor('bench/quick')
  let left = WARM_UP_REQUESTS
  const keepAsking = async (): Promise<void> => {
    while (left-- > 0) {
      const response = await pool.request({ method: 'POST', path: PATH, headers, body })
      if (response.statusCode !== 200) throw new Error(`${response.statusCode} ${await response.body.text()}`)
      await response.body.dump()
    }
  }
  await Promise.all(Array.from({ length: 32 }, keepAsking))
}

async function sendAll({ origin, headers }: Target, sockets: Socket[]): Promise<void> {
  const body = bodyFor('bench/held')
  const lines = Object.entries({ host: 'weir.test', ...headers, 'content-length': String(body.length) })
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  for (let index = 0; index < callers; index++) {
    const socket = connect(Number(new URL(origin).port), '127.0.0.1')
    socket.on('error', () => {})
    socket.on('data', (chunk) => console.error(`unexpected: ${chunk.toString('latin1')}`))
    socket.write(`POST ${PATH} HTTP/1.1\r\n${head}\r\n${body}`)
    sockets.push(socket)
    if (index % 100 === 99) await once(socket, 'connect')
  }
}

function bodyFor(model: string): string {
  const text = (content: string): string =>
    JSON.stringify({ model, messages: [{ role: 'user', content }], max_tokens: 100 })
  return text('Tell me about the river. '.repeat(100).slice(0, BODY_BYTES - text('').length))
}

async function startBare(): Promise<Target> {
  const child = fork(new URL('bare-holder.ts', import.meta.url))
  const [port] = (await once(child, 'message')) as [number]
  return {
    name: 'node:http',
    origin: `http://127.0.0.1:${port}`,
    pid: child.pid ?? 0,
    headers: clientHeaders('none'),
    held: async (pool) => Number(await (await pool.request({ method: 'GET', path: '/' })).body.text()),
    stop: () => {
      child.kill()
      return once(child, 'exit')
    },
  }
}

async function startHoldingWeir(): Promise<Target> {
  const engine = createServer((request, response) => {
    // The first request for bench/held never gets an answer; all others queue behind it.
    if (request.url?.startsWith('/held') && request.method === 'POST') return
    request.resume().on('end', () => response.setHeader('content-type', 'application/json').end(quickAnswer))
  })
  await new Promise<void>((resolve) => engine.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(engine.address() as AddressInfo).port}`
  const narrow = { max_concurrent_requests: 1, max_queue_depth: 1_000_000, max_wait_ms: 3_600_000 }
  const weir = await startWeir({
    log: { level: 'warn' },
    models: [benchModel(`${url}/quick/v1`, {}, 'bench/quick'), benchModel(`${url}/held/v1`, narrow, 'bench/held')],
  })
  const headers = clientHeaders(weir.key)
  return {
    name: 'Weir',
    origin: weir.origin,
    pid: weir.pid,
    headers,
    async held(pool) {
      const { body } = await pool.request({ method: 'GET', path: '/api/v1/queue/status', headers })
      const { data } = (await body.json()) as {
        data: { model: string; queue_depth: number; in_flight_requests: number }[]
      }
      const lane = data.find(({ model }) => model === 'bench/held')
      return (lane?.queue_depth ?? 0) + (lane?.in_flight_requests ?? 0)
    },
    async stop() {
      await weir.stop()
      engine.closeAllConnections()
      engine.close()
    },
  }
}

function clientHeaders(key: string): Record<string, string> {
  return {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    accept: 'application/json',
    'user-agent': 'bench/1.0',
  }
}
