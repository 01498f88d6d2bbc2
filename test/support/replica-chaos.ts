import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { seededRandom } from '../../src/shared/seeded-random.ts'
import { testReplica } from './redis-replica.ts'
import { startRedis } from './redis-server.ts'
import { tcpProxy, type TcpProxy } from './tcp-proxy.ts'
import { eventually } from './waiting.ts'

const CONCURRENCY = 6
const REPLICAS = 4
const LEASE_MS = 1000
const deeds = [
  'kill',
  'stop',
  'cut',
  'black hole',
  'delay',
  'restart Redis empty',
  'restart Redis with old data',
] as const

export type Deed = (typeof deeds)[number]

/** Something that a replica has the engine do. */
interface Work {
  readonly pid: number
  readonly admittedAt: number
  readonly arrivedAt: number
}

/**
 * An engine that counts its connections. Work that was admitted before its process fell asleep does not count: nobody can take it
 * back, even if it gets here after the process has woken up.
 */
async function countingEngine() {
  const atWork = new Map<Socket, Work>()
  const sleptAt = new Map<number, number>()
  const figures = { served: 0, worst: 0, atWorst: '' }

  function count(): void {
    const counted = [...atWork.values()].filter(({ pid, admittedAt }) => admittedAt > (sleptAt.get(pid) ?? 0))
    if (counted.length <= figures.worst) return
    figures.worst = counted.length
    const now = Date.now()
    figures.atWorst = counted
      .map(({ pid, admittedAt, arrivedAt }) => `${pid} admitted ${now - admittedAt} ms ago, here ${now - arrivedAt} ms`)
      .join('; ')
  }

  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => {})
    socket.once('data', (bytes) => {
      const [pid = 0, admittedAt = 0] = bytes.toString().split(' ').map(Number)
      atWork.set(socket, { pid, admittedAt, arrivedAt: Date.now() })
      count()
    })
    socket.once('end', () => {
      if (atWork.delete(socket)) figures.served += 1
      socket.end()
    })
    socket.once('close', () => atWork.delete(socket))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    figures,
    fellAsleep: (pid: number) => void sleptAt.set(pid, Date.now()),
    close: () => void server.close(),
  }
}

/** Lets things happen to four replicas under load, and to their Redis; checks that the limit holds and all of it comes back. */
export async function chaos(
  rounds: number,
  seed: number,
): Promise<{ served: number; deeds: ReadonlyMap<Deed, number> }> {
  const random = seededRandom(seed)
  const redis = await startRedis()
  const engine = await countingEngine()
  const proxies: TcpProxy[] = []
  const children: ChildProcess[] = []
  const done = new Map<Deed, number>(deeds.map((deed) => [deed, 0]))

  function start(index: number): void {
    const program = new URL('./replica-program.ts', import.meta.url).pathname
    const url = `redis://127.0.0.1:${proxies[index]?.port}`
    children[index] = spawn(process.execPath, [program, url, `${engine.port}`, `${CONCURRENCY}`, '6'], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  }

  async function happen(deed: Deed): Promise<void> {
    const index = Math.floor(random() * REPLICAS)
    const [child, proxy] = [children[index]!, proxies[index]!]
    if (deed === 'kill') {
      child.kill('SIGKILL')
      await once(child, 'exit')
      start(index)
    } else if (deed === 'stop') {
      child.kill('SIGSTOP')
      engine.fellAsleep(child.pid ?? 0)
      await sleep(random() * 3 * LEASE_MS)
      child.kill('SIGCONT')
    } else if (deed === 'cut') proxy.cut()
    else if (deed === 'black hole') {
      proxy.blackHole(true)
      await sleep(random() * 3 * LEASE_MS)
      proxy.blackHole(false)
    } else if (deed === 'delay') {
      proxy.delay(30)
      await sleep(random() * LEASE_MS)
      proxy.delay(0)
    } else {
      if (deed === 'restart Redis with old data') await redis.save()
      await redis.kill()
      await sleep(random() * LEASE_MS)
      await redis.start()
    }
  }

  async function serves(after: string): Promise<void> {
    const before = engine.figures.served
    await eventually(`requests are served after ${after}`, () => engine.figures.served > before + 20, 30_000)
    const { worst, atWorst } = engine.figures
    assert.ok(worst <= CONCURRENCY, `${worst} at once after ${after}: ${atWorst}`)
  }

  try {
    for (let index = 0; index < REPLICAS; index += 1) {
      proxies.push(await tcpProxy(redis.port))
      start(index)
    }
    await serves('the start')
    for (let round = 0; round < rounds; round += 1) {
      // Every deed happens before any happens again.
      const left = deeds.filter((deed) => done.get(deed) === Math.floor(round / deeds.length))
      const deed = left[Math.floor(random() * left.length)]!
      done.set(deed, (done.get(deed) ?? 0) + 1)
      await happen(deed)
      await serves(deed)
    }
    const over = children.map((child) => once(child, 'exit'))
    for (const child of children) child.kill('SIGTERM')
    await Promise.all(over)
    await requireFree(redis.url)
    return { served: engine.figures.served, deeds: done }
  } finally {
    for (const child of children) child.kill('SIGKILL')
    for (const proxy of proxies) await proxy.close()
    engine.close()
    await redis.remove()
  }
}

/** A replica that could not say goodbye is forgotten by those who are left, so one is. */
async function requireFree(url: string): Promise<void> {
  const client = new Redis(url)
  const last = testReplica(url, { leaseMs: LEASE_MS })
  last.admission.setLanes(
    new Map([
      ['chaos', { tokenBudget: 1_000_000, maxConcurrentRequests: CONCURRENCY, maxQueueDepth: 1000, maxWaitMs: 60_000 }],
    ]),
  )
  try {
    await eventually('nothing is left in the lane', async () => {
      const figures = await client.hget('weir:{chaos}:lane', 'figures')
      const left = await client.exists('weir:{chaos}:queue', 'weir:{chaos}:grants', 'weir:{chaos}:places')
      // The first two are the requests and the tokens in flight.
      return figures?.startsWith('0 0 ') === true && left === 0
    })
  } finally {
    client.disconnect()
    await last.close()
  }
}
