import assert from 'node:assert/strict'
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import type { FromWorker, ToWorker } from '../../src/cluster/workers/messages.ts'
import { sharedPort } from '../../src/cluster/workers/shared-port.ts'
import { inLongRun, someOf } from '../support/long-run.ts'
import { rawClient, type RawClient } from '../support/raw-client.ts'
import { eventually, within } from '../support/waiting.ts'

const program = new URL('../support/worker-port-program.ts', import.meta.url)
const REQUEST = 'GET / HTTP/1.1\r\nHost: weir\r\n\r\n'

/** What the program says, besides what every worker does. */
interface ProgramMessage {
  readonly ready?: number
  readonly failed?: NodeJS.ErrnoException
}

interface Stage {
  readonly workers: readonly ChildProcess[]
  start(): Promise<ChildProcess>
  /** Callers that keep their connections, each with a request on its way. */
  callers(count: number): Promise<readonly RawClient[]>
  /** No new connection is accepted. */
  close(): void
}

/** A worker of a test is not taken for one that stands still, however busy the machine is, unless the test says so. */
const PATIENT_MS = 600_000

/** Workers as real processes, which share a port of this one. */
async function stage(t: TestContext, count: number, silentMs = PATIENT_MS): Promise<Stage> {
  const port = sharedPort(silentMs)
  const ports = new Set<number>()
  const started: ChildProcess[] = []
  t.after(() => {
    port.close()
    for (const worker of started) worker.kill('SIGKILL')
  })
  async function start(): Promise<ChildProcess> {
    const worker = fork(program)
    started.push(worker)
    port.serve(worker)
    const ready = new Promise<number>((resolve) =>
      worker.on('message', (message: ProgramMessage) => message.ready && resolve(message.ready)),
    )
    ports.add(await within(30_000, 'the worker is ready', ready))
    assert.equal(ports.size, 1, 'all have the same port')
    return worker
  }
  const workers: ChildProcess[] = []
  for (let number = 0; number < count; number += 1) workers.push(await start())
  return {
    workers,
    start,
    close: port.close,
    async callers(many) {
      const url = `http://127.0.0.1:${[...ports][0]}`
      const callers = await Promise.all(Array.from({ length: many }, () => rawClient(url)))
      t.after(() => callers.forEach((caller) => caller.leave()))
      for (const caller of callers) caller.send(REQUEST)
      return callers
    },
  }
}

const isAnswered = ({ received }: RawClient): boolean => received.includes('"pid"')

async function answered(callers: readonly RawClient[]): Promise<void> {
  await eventually('all are answered', () => callers.every(isAnswered))
}

/** How many callers each process serves. */
function shares(callers: readonly RawClient[]): ReadonlyMap<number, number> {
  const counts = new Map<number, number>()
  for (const { received } of callers) {
    const pid = Number(/"pid":(\d+)/.exec(received)?.[1])
    counts.set(pid, (counts.get(pid) ?? 0) + 1)
  }
  return counts
}

describe('the port that workers share', () => {
  for (const count of someOf([256, 64], 1)) {
    it(`gives each of two workers half of ${count} keep-alive connections that are opened at once`, async (t) => {
      const { workers, callers } = await stage(t, 2)
      const kept = await callers(count)
      await answered(kept)
      assert.deepEqual(shares(kept), new Map(workers.map(({ pid }) => [pid, count / 2])))
      // Limits of callers without a key depend on it.
      for (const { received } of kept) assert.match(received, /"address":"127\.0\.0\.1"/)
    })
  }

  it('gives a replacement worker as many connections as its predecessor had', inLongRun, async (t) => {
    const { workers, callers, start } = await stage(t, 2)
    const [stays, dies] = workers
    const kept = await callers(20)
    await answered(kept)
    dies?.kill('SIGKILL')
    await eventually('half of the connections break', () => kept.filter(({ isClosed }) => isClosed).length === 10)
    const fresh = await start()
    const more = await callers(10)
    await answered(more)
    assert.deepEqual(shares(more), new Map([[fresh.pid, 10]]))
    assert.equal(shares(kept).get(stays?.pid ?? 0), 10)
  })

  it('balances new connections after others have ended', inLongRun, async (t) => {
    const { workers, callers } = await stage(t, 2)
    const kept = await callers(20)
    await answered(kept)
    const [first] = workers
    const left = kept.filter((caller) => shares([caller]).has(first?.pid ?? 0))
    left.forEach((caller) => caller.leave())
    // The worker notices at once, but tells it a moment later: until then it gets only every other one.
    const more: RawClient[] = []
    const has = (pid: number | undefined): number => shares([...kept, ...more]).get(pid ?? 0) ?? 0
    await eventually('both have as many', async () => {
      if (more.length < 20) more.push(...(await callers(1)))
      await answered(more)
      return has(first?.pid) - left.length === has(workers[1]?.pid)
    })
  })

  it('delays only the one caller whose connection a hanging worker was offered', async (t) => {
    const { workers, callers } = await stage(t, 2, 500)
    const [stuck, other] = workers
    stuck?.kill('SIGSTOP')
    const kept = await callers(40)
    await eventually('the others are answered', () => kept.filter(isAnswered).length === 39)
    assert.equal(shares(kept).get(other?.pid ?? 0), 39)
    stuck?.kill('SIGCONT')
    await answered(kept)
    assert.equal(shares(kept).get(stuck?.pid ?? 0), 1)
  })

  it('answers that caller from another worker, if the hanging one is killed', async (t) => {
    const { workers, callers } = await stage(t, 2, 500)
    const [stuck, other] = workers
    stuck?.kill('SIGSTOP')
    const kept = await callers(40)
    await eventually('the others are answered', () => kept.filter(isAnswered).length === 39)
    stuck?.kill('SIGKILL')
    await answered(kept)
    assert.deepEqual(shares(kept), new Map([[other?.pid, 40]]))
  })

  it('lets callers wait while there is no worker, and the next worker serves them', async (t) => {
    const { workers, callers, start } = await stage(t, 1)
    workers[0]?.kill('SIGKILL')
    await once(workers[0] as ChildProcess, 'exit')
    const kept = await callers(10)
    const fresh = await start()
    await answered(kept)
    assert.deepEqual(shares(kept), new Map([[fresh.pid, 10]]))
  })

  it('loses no connection while workers are replaced one by one', async (t) => {
    const { workers, callers, start } = await stage(t, 2)
    const isOver = { now: false }
    let served = 0
    const load = Array.from({ length: 8 }, async () => {
      while (!isOver.now) {
        const [caller] = await callers(1)
        await eventually('the caller gets a response', () => caller?.received.includes('\r\n\r\n') ?? false)
        // A worker that leaves closes connections that it had taken, after an answer.
        assert.match(caller?.received ?? '', /^HTTP\/1.1 (200|503) /)
        caller?.leave()
        served += 1
      }
    })
    for (const worker of workers) {
      const before = served
      await eventually('there is load', () => served > before + 50)
      const over = once(worker, 'exit')
      worker.kill('SIGTERM')
      await start()
      assert.deepEqual(await over, [0, null])
    }
    isOver.now = true
    await Promise.all(load)
  })

  it('answers an incomplete request with 408', async (t) => {
    const { callers } = await stage(t, 1)
    const [caller] = await callers(1)
    caller?.send('POST / HTTP/1.1\r\nHost: weir\r\nContent-Le')
    await caller?.sees('HTTP/1.1 408 ')
    await caller?.closed()
  })

  it('is closed by the process that opened it', async (t) => {
    const { callers, close } = await stage(t, 1)
    const kept = await callers(1)
    close()
    await answered(kept)
    await eventually('no connection is accepted', () =>
      callers(1).then(
        () => false,
        ({ code }: NodeJS.ErrnoException) => code === 'ECONNREFUSED',
      ),
    )
  })

  it('a worker takes a connection only once, and returns connections that it is offered while it leaves', async (t) => {
    const received: FromWorker[] = []
    const sockets: Socket[] = []
    const server = createServer({ pauseOnConnect: true }, (socket) => sockets.push(socket)).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const callers = await Promise.all([rawClient(url), rawClient(url), rawClient(url)])
    await eventually('all have come', () => sockets.length === 3)
    const worker = fork(program)
    t.after(() => {
      worker.kill('SIGKILL')
      for (const caller of callers) caller.leave()
      for (const socket of sockets) socket.destroy()
      server.close()
    })
    worker.on('message', (message: FromWorker) => received.push(message))
    const receives = (message: FromWorker): Promise<void> =>
      eventually(JSON.stringify(message), () => received.some((it) => isDeepStrictEqual(it, message)), 30_000)
    const send = (message: ToWorker, socket?: Socket): void => void worker.send(message, socket, { keepOpen: true })
    await eventually('it wants to listen', () => received.some(({ kind }) => kind === 'listen'), 30_000)
    send({ kind: 'listening', port: 1 })
    send({ kind: 'offer', offer: 1 }, sockets[0])
    await receives({ kind: 'taken', offer: 1, open: 1 })
    send({ kind: 'offer', offer: 1 }, sockets[0])
    send({ kind: 'offer', offer: 2 }, sockets[1])
    await receives({ kind: 'taken', offer: 2, open: 2 })
    callers[0]?.send(REQUEST)
    await callers[0]?.sees('"pid"')
    callers[0]?.send('GET /held HTTP/1.1\r\nHost: weir\r\n\r\n')
    callers[1]?.leave()
    await receives({ kind: 'open', open: 1 })
    worker.kill('SIGTERM')
    await receives({ kind: 'leaving' })
    send({ kind: 'offer', offer: 3 }, sockets[2])
    await receives({ kind: 'refused', offer: 3 })
    assert.ok(!callers[2]?.isClosed)
  })

  it('reports to a worker why it cannot be opened', async (t) => {
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port: number } = taken.address() as AddressInfo
    const port = sharedPort()
    const worker = fork(program, ['127.0.0.1', String(number)])
    t.after(() => {
      port.close()
      taken.close()
      worker.kill('SIGKILL')
    })
    port.serve(worker)
    const failed = new Promise<NodeJS.ErrnoException | undefined>((resolve) =>
      worker.on('message', (message: ProgramMessage) => message.failed && resolve(message.failed)),
    )
    const error = await within(30_000, 'the error is reported', failed)
    assert.deepEqual(error, { code: 'EADDRINUSE', syscall: 'listen', address: '127.0.0.1', port: number })
  })
})
