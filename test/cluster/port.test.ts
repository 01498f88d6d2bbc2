import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Server, type Socket } from 'node:net'
import { describe, it } from 'node:test'
import { openOwnPort } from '../../src/cluster/workers/port.ts'
import { eventually } from '../support/waiting.ts'

const CALLERS = 200

/** Callers in another process, which connect while this one is busy. */
const callersProgram = (port: number): string => `
  const { connect } = require('node:net')
  let connected = 0
  for (let caller = 0; caller < ${CALLERS}; caller++) {
    connect(${port}, '127.0.0.1', () => ++connected === ${CALLERS} && process.stdout.write('all')).on('error', () => {})
  }
  process.stdin.resume().on('end', () => process.exit())`

describe('a port', { skip: process.platform !== 'linux' && 'needs sockets that share a port' }, () => {
  it('accepts many connections in one turn of the event loop, so that new callers do not wait for busy streams', async (t) => {
    const sockets: Socket[] = []
    const { port, close } = await openOwnPort((socket) => sockets.push(socket), '127.0.0.1', 0)
    const callers = spawn(process.execPath, ['-e', callersProgram(port)], { stdio: ['pipe', 'pipe', 'ignore'] })
    t.after(() => {
      callers.stdin.end()
      close()
      for (const socket of sockets) socket.destroy()
    })
    const turns: number[] = []
    let isCounting = true
    const count = (): void => {
      turns.push(sockets.length - turns.reduce((sum, taken) => sum + taken, 0))
      if (isCounting) setImmediate(count)
      // As if every turn had hundreds of streams to serve.
      for (const until = performance.now() + 10; performance.now() < until;);
    }
    setImmediate(count)
    await once(callers.stdout, 'data')
    await eventually('all are taken', () => sockets.length === CALLERS)
    isCounting = false
    assert.ok(Math.max(...turns) >= 4, `at most ${Math.max(...turns)} in a turn`)
  })

  it('is on the given address alone, and its connections notice a client that is gone', async (t) => {
    const listen = t.mock.method(Server.prototype, 'listen')
    const { close } = await openOwnPort(() => {}, '127.0.0.1', 0)
    close()
    assert.equal(listen.mock.callCount(), 16)
    for (const { this: server, arguments: args } of listen.mock.calls) {
      assert.partialDeepStrictEqual(args[0], { host: '127.0.0.1', backlog: 4096, reusePort: true })
      const seconds = { keepAliveInitialDelay: 5 }
      assert.partialDeepStrictEqual(server, { keepAlive: true, ...seconds, noDelay: true, allowHalfOpen: true })
    }
  })

  it('belongs to one service: a second one fails to open it', async (t) => {
    const first = await openOwnPort(() => {}, '127.0.0.1', 0)
    t.after(first.close)
    await assert.rejects(
      openOwnPort(() => {}, '127.0.0.1', first.port),
      { code: 'EADDRINUSE', port: first.port },
    )
  })

  it('leaves nothing listening if it cannot be opened completely', async (t) => {
    const servers: Server[] = []
    const { listen } = Server.prototype
    t.mock.method(Server.prototype, 'listen', function (this: Server, ...args: Parameters<Server['listen']>) {
      if (servers.push(this) < 3) return listen.apply(this, args)
      queueMicrotask(() => this.emit('error', new Error('no more sockets')))
      return this
    })
    await assert.rejects(
      openOwnPort(() => {}, '127.0.0.1', 0),
      /no more sockets/,
    )
    assert.deepEqual(
      servers.map(({ listening }) => listening),
      [false, false, false],
    )
  })

  it('can be opened again at once after it was closed', async () => {
    const first = await openOwnPort(() => {}, '127.0.0.1', 0)
    first.close()
    const second = await openOwnPort(() => {}, '127.0.0.1', first.port)
    assert.equal(second.port, first.port)
    second.close()
  })
})
