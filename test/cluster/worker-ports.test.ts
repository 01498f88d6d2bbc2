import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { connect, createServer, Server, Socket, type AddressInfo } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { portOf } from '../../src/cluster/workers/worker-port.ts'
import type { FromWorker, ToWorker } from '../../src/cluster/workers/messages.ts'
import { sharedPort, type SharedPort } from '../../src/cluster/workers/shared-port.ts'
import { eventually } from '../support/waiting.ts'
import { turn } from '../support/hand-clock.ts'

/** A worker as the process that started it sees it. */
class TestWorker extends EventEmitter {
  connected = true
  readonly received: ToWorker[] = []
  readonly offers: { readonly offer: number; readonly socket: Socket }[] = []

  send(message: ToWorker, socket: Socket | undefined): boolean {
    this.received.push(message)
    if (message.kind === 'offer' && socket) this.offers.push({ offer: message.offer, socket })
    return true
  }

  post(message: FromWorker): void {
    this.emit('message', message)
  }
}

function served(port: SharedPort): TestWorker {
  const worker = new TestWorker()
  port.serve(worker as unknown as ChildProcess)
  return worker
}

async function listening(worker: TestWorker, port = 0): Promise<number> {
  worker.post({ kind: 'listen', host: '127.0.0.1', port, backlog: 64 })
  await eventually('it has an answer', () => worker.received.length > 0)
  const [message] = worker.received
  return message?.kind === 'listening' ? message.port : 0
}

async function stage(t: TestContext) {
  const port = sharedPort(1_000_000)
  t.after(() => port.close())
  const [one, two] = [served(port), served(port)]
  const address = await listening(one)
  assert.equal(await listening(two, address), address)
  const call = (): Socket => {
    const client = connect(address, '127.0.0.1')
    client.on('error', () => {})
    t.after(() => client.destroy())
    return client
  }
  const arrived = (worker: TestWorker, count: number) =>
    eventually('a connection is offered', () => worker.offers.length === count)
  return { port, one, two, address, call, arrived }
}

describe('the port of all workers', () => {
  it('offers each connection to one worker, reads nothing from it, and keeps it until it is taken', async (t) => {
    const { one, two, call, arrived } = await stage(t)
    const client = call()
    client.write('hello')
    await arrived(one, 1)
    const [{ offer, socket }] = one.offers as [{ offer: number; socket: Socket }]
    for (let turns = 0; turns < 20; turns++) await turn()
    assert.deepEqual([socket.bytesRead, socket.destroyed, two.offers.length], [0, false, 0])
    socket.emit('error', new Error('the client has reset it'))
    one.post({ kind: 'taken', offer, open: 1 })
    assert.ok(socket.destroyed, 'the worker has its own end of it')
  })

  it('chooses by the number of connections of each worker, and passes on what one refuses', async (t) => {
    const { one, two, call, arrived } = await stage(t)
    one.post({ kind: 'open', open: 5 })
    call()
    await arrived(two, 1)
    two.post({ kind: 'refused', offer: two.offers[0]?.offer ?? 0 })
    await eventually('it is offered again', () => one.offers.length + two.offers.length === 2)
    const last = two.offers[1] ?? one.offers[0]
    assert.equal(last?.socket, two.offers[0]?.socket)
  })

  it('offers nothing to a worker that leaves, and reassigns what it had not taken', async (t) => {
    const { one, two, call, arrived } = await stage(t)
    call()
    await arrived(one, 1)
    one.emit('close')
    await arrived(two, 1)
    assert.equal(two.offers[0]?.socket, one.offers[0]?.socket)
    two.post({ kind: 'taken', offer: two.offers[0]?.offer ?? 0, open: 1 })
    two.post({ kind: 'leaving' })
    call()
    for (let turns = 0; turns < 20; turns++) await turn()
    assert.deepEqual([one.offers.length, two.offers.length], [1, 1])
  })

  it('does not add a worker that has ended in the meantime', async (t) => {
    const { port, call, arrived, one, two, address } = await stage(t)
    const late = served(port)
    late.connected = false
    await listening(late, address)
    for (let count = 1; count <= 4; count++) {
      call()
      await eventually('it is offered', () => one.offers.length + two.offers.length === count)
      for (const worker of [one, two]) {
        const offer = worker.offers.at(-1)?.offer
        if (offer !== undefined) worker.post({ kind: 'taken', offer, open: worker.offers.length })
      }
    }
    await arrived(late, 0)
  })

  it('reports why it cannot be opened, and can be requested again', async (t) => {
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port: number } = taken.address() as AddressInfo
    const port = sharedPort(1_000_000)
    t.after(() => port.close())
    const worker = served(port)
    await listening(worker, number)
    const [message] = worker.received
    assert.ok(message?.kind === 'not listening')
    assert.deepEqual(message.cause, { code: 'EADDRINUSE', syscall: 'listen', address: '127.0.0.1', port: number })
    assert.match(message.message, /EADDRINUSE/)
    taken.close()
    await once(taken, 'close')
    assert.equal(await listening(served(port), number), number)
  })

  it('lets 16,384 connections wait while there is no worker, and ends those beyond', async (t) => {
    let connect: (socket: object) => void = () => assert.fail('nothing listens')
    t.mock.method(Server.prototype, 'address', () => ({ port: 80 }))
    t.mock.method(Server.prototype, 'listen', function (this: Server, _: object, isListening: () => void) {
      // As Node's HTTP server has them. The worker gets the first byte.
      const usual = { noDelay: true, allowHalfOpen: true, keepAlive: true, keepAliveInitialDelay: 5 }
      assert.partialDeepStrictEqual(this, { ...usual, pauseOnConnect: true })
      connect = (socket) => void this.emit('connection', socket)
      isListening()
    })
    const port = sharedPort(1_000_000)
    const worker = served(port)
    worker.connected = false
    await listening(worker)
    let ended = 0
    for (let count = 0; count < 16_385; count++) {
      connect({ on() {}, destroy: () => void ended++ })
    }
    assert.equal(ended, 1)
    port.close()
    assert.equal(ended, 16_385)
  })

  it('accepts nothing after it was closed', async () => {
    const port = sharedPort(1_000_000)
    const address = await listening(served(port))
    port.close()
    await eventually('it is closed', async () => {
      const client = connect(address, '127.0.0.1')
      const [error] = (await Promise.race([once(client, 'connect'), once(client, 'error')]).catch((it: unknown) => [
        it,
      ])) as [NodeJS.ErrnoException | undefined]
      client.destroy()
      return error?.code === 'ECONNREFUSED'
    })
  })
})

describe('a port that a worker gets from the primary', () => {
  /** This process, as a worker. */
  async function workerStage(t: TestContext) {
    const sent: FromWorker[] = []
    const { send } = process
    process.send = (message: unknown) => sent.push(message as FromWorker) > 0
    const before = new Set(process.listeners('message'))
    t.after(() => {
      if (send) process.send = send
      else delete process.send
      for (const listener of process.listeners('message')) {
        if (!before.has(listener)) process.removeListener('message', listener)
      }
    })
    const receive = (message: ToWorker, socket?: Socket) => process.emit('message', message, socket)
    const taken: Socket[] = []
    const opening = portOf(2)((socket) => taken.push(socket), '127.0.0.1', 8080)
    return { said: sent, tell: receive, taken, opening, last: () => sent.splice(0) }
  }

  it('is open when the primary reports so, or fails with the reason', async (t) => {
    const { tell, opening, last } = await workerStage(t)
    assert.deepEqual(last(), [{ kind: 'listen', host: '127.0.0.1', port: 8080, backlog: 4096 }])
    tell({ kind: 'listening', port: 81 })
    assert.equal((await opening).port, 81)
    const failed = portOf(2)(() => {}, '127.0.0.1', 8080)
    const cause = { code: 'EADDRINUSE', syscall: 'listen', address: '127.0.0.1', port: 8080 }
    tell({ kind: 'not listening', message: 'it is in use', cause })
    await assert.rejects(failed, { message: 'it is in use', ...cause })
  })

  it('counts the connections that it takes, and reports ended ones once per turn', async (t) => {
    const { tell, taken, opening, last } = await workerStage(t)
    tell({ kind: 'listening', port: 81 })
    await opening
    last()
    const sockets = [new Socket(), new Socket(), new Socket()]
    for (const [index, socket] of sockets.entries()) tell({ kind: 'offer', offer: index + 1 }, socket)
    assert.deepEqual(
      last(),
      [1, 2, 3].map((number) => ({ kind: 'taken', offer: number, open: number })),
    )
    assert.deepEqual(taken, sockets)
    const again = new Socket()
    tell({ kind: 'offer', offer: 3 }, again)
    assert.deepEqual([last(), again.destroyed, taken.length], [[], true, 3], 'the same offer is taken once')
    tell({ kind: 'offer', offer: 4 })
    assert.deepEqual([last(), taken.length], [[{ kind: 'taken', offer: 4, open: 3 }], 3], 'it was closed on its way')
    sockets[0]?.emit('close')
    sockets[1]?.emit('close')
    await turn()
    assert.deepEqual(last(), [{ kind: 'open', open: 1 }])
    sockets[2]?.emit('close')
    await turn()
    assert.deepEqual(last(), [{ kind: 'open', open: 0 }])
  })

  it('refuses offers after it has left, and does not report connections that end then', async (t) => {
    const { tell, taken, opening, last } = await workerStage(t)
    tell({ kind: 'listening', port: 81 })
    const { close } = await opening
    const running = new Socket()
    tell({ kind: 'offer', offer: 1 }, running)
    last()
    close()
    close()
    assert.deepEqual(last(), [{ kind: 'leaving' }])
    const socket = new Socket()
    tell({ kind: 'offer', offer: 2 }, socket)
    assert.deepEqual([last(), socket.destroyed, taken.length], [[{ kind: 'refused', offer: 2 }], true, 1])
    running.emit('close')
    await turn()
    assert.deepEqual(last(), [])
  })
})
