import assert from 'node:assert/strict'
import http from 'node:http'
import https from 'node:https'
import { syncBuiltinESMExports } from 'node:module'
import { describe, it, type TestContext } from 'node:test'
import { listen, type Application } from '../../src/server/server.ts'
import { rawClient } from '../support/raw-client.ts'
import { turn } from '../support/hand-clock.ts'

/** The limits that every listener has unless it is given others. */

const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'

async function stage(t: TestContext, answer: Application['answer']) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const application = { answer, rateOf: async () => undefined, headers: () => ({}), over() {} }
  const listener = await listen(application, '127.0.0.1', 0)
  const client = await rawClient(`http://127.0.0.1:${listener.address.port}`)
  t.after(async () => {
    client.leave()
    t.mock.timers.reset()
    await listener.close(0)
  })
  return client
}

async function until(what: string, isSo: () => boolean): Promise<void> {
  const end = performance.now() + 60_000
  while (!isSo()) {
    if (performance.now() > end) throw new Error(`not within a minute: ${what}`)
    await turn()
  }
}

async function turns(): Promise<void> {
  for (let count = 0; count < 50; count++) await turn()
}

describe('a listener', () => {
  it('disconnects a caller that reads nothing of its answer for a minute', async (t) => {
    let isSent = false
    const client = await stage(t, async (exchange) => {
      exchange.send(200, 'text/plain', Buffer.alloc(32 * 1024 * 1024))
      isSent = true
    })
    client.socket.pause()
    client.send(REQUEST)
    await until('the answer is on its way', () => isSent)
    await turns()
    t.mock.timers.tick(59_999)
    await turns()
    assert.equal(client.isClosed, false)
    t.mock.timers.tick(1)
    client.socket.resume()
    await until('it is cut off', () => client.isClosed)
    assert.ok(client.received.length < 32 * 1024 * 1024)
  })

  it('does not disconnect a caller later that has read its answer in time', async (t) => {
    const length = 32 * 1024 * 1024
    let isSent = false
    const client = await stage(t, async (exchange) => {
      exchange.openAnswer('text/plain', { 'Content-Length': String(length) })
      exchange.write('x'.repeat(length))
      exchange.end('')
      isSent = true
    })
    client.socket.pause()
    client.send(REQUEST)
    await until('the answer is on its way', () => isSent)
    await turns()
    t.mock.timers.tick(30_000)
    client.socket.resume()
    await until('it has everything', () => client.received.length > length)
    await turns()
    t.mock.timers.tick(60_000)
    await turns()
    assert.equal(client.isClosed, false)
  })

  it('makes Node end what takes too long: 30 s for a head, 300 s for a request, checked every 5 s, and 75 s between two', async (t) => {
    const { mock } = t.mock.method(http, 'createServer')
    syncBuiltinESMExports()
    t.after(() => {
      mock.restore()
      syncBuiltinESMExports()
    })
    const client = await stage(t, async (exchange) => exchange.sendJson('{}'))
    const [call] = mock.calls
    assert.ok(call?.result)
    const { headersTimeout, requestTimeout, keepAliveTimeout } = call.result
    assert.deepEqual([headersTimeout, requestTimeout, keepAliveTimeout], [30_000, 300_000, 75_000])
    const [options] = call.arguments as unknown as [http.ServerOptions]
    assert.equal(options.connectionsCheckingInterval, 5000)
    client.send(REQUEST)
    await until('it serves', () => client.received.endsWith('{}'))
    assert.match(client.received, /\r\nKeep-Alive: timeout=75\r\n/)
  })

  it('ends a TLS handshake that takes longer than 30 s', async (t) => {
    const { mock } = t.mock.method(https, 'createServer')
    syncBuiltinESMExports()
    t.after(() => {
      mock.restore()
      syncBuiltinESMExports()
    })
    const application = { answer: async () => {}, rateOf: async () => undefined, headers: () => ({}), over() {} }
    const listener = await listen(application, '127.0.0.1', 0, { tls: {} })
    await listener.close(0)
    const [call] = mock.calls
    assert.ok(call)
    const [options] = call.arguments as unknown as [https.ServerOptions]
    assert.equal(options.handshakeTimeout, 30_000)
  })

  it('gives a refused caller 10 s to close its side', async (t) => {
    const client = await stage(t, async (exchange) => exchange.sendJson('{}'))
    client.socket.allowHalfOpen = true
    client.send('nonsense\r\n\r\n')
    await until('it is refused', () => client.received.includes('invalid_value'))
    t.mock.timers.tick(9999)
    await turns()
    assert.equal(client.isClosed, false)
    t.mock.timers.tick(1)
    // A connection that is closed on both sides is reset by what is sent to it.
    await until('it is cut off', () => {
      client.socket.write('x')
      return client.isClosed
    })
  })
})
