import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { listen, type Application } from '../../src/http/server.ts'
import { rawClient } from '../support/raw-client.ts'
import { gate, within } from '../support/waiting.ts'

const application: Application = {
  answer: async (exchange) => exchange.sendJson('{}'),
  look: async () => undefined,
  headers: () => ({}),
  over() {},
}

describe('a listener that drains', () => {
  it('closes idle connections at once, and answers a request whose first bytes it has read', async (t) => {
    const listener = await listen(application, '127.0.0.1', 0)
    t.after(() => listener.close(0))
    const url = `http://127.0.0.1:${listener.address.port}`
    const [idle, begun, other] = [await rawClient(url), await rawClient(url), await rawClient(url)]
    begun.send('GET / HTTP/1.1\r\nHost: x\r\n')
    // What was sent before has been read by the time that these are answered.
    for (const client of [other, idle]) {
      client.send('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
      await client.sees('{}')
    }
    listener.drain()
    await within(10_000, 'the idle connections close', Promise.all([idle.closed(), other.closed()]))
    begun.send('\r\n')
    await within(10_000, 'the other one closes', begun.closed())
    assert.match(begun.received, /^HTTP\/1\.1 503 [^]*"service_unavailable"/)
  })

  it('answers a request that came before the answer to the last one, and closes then', async (t) => {
    const held = gate()
    const listener = await listen(
      {
        ...application,
        async answer(exchange) {
          exchange.openAnswer('text/plain', {})
          exchange.write('begun')
          await held.opened
          exchange.end('')
        },
      },
      '127.0.0.1',
      0,
    )
    t.after(() => listener.close(0))
    const client = await rawClient(`http://127.0.0.1:${listener.address.port}`)
    client.send('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(3))
    await client.sees('begun')
    const closed = listener.close(10_000)
    held.open()
    await within(10_000, 'the connection closes', Promise.all([client.closed(), closed]))
    assert.deepEqual(client.received.match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 200', 'HTTP/1.1 503'])
    assert.match(client.received, /HTTP\/1\.1 503 [^]*\r\nConnection: close\r\n/)
  })

  it('answers the first request of a connection that was made just before, and closes one that sends nothing', async () => {
    const listener = await listen(application, '127.0.0.1', 0)
    const url = `http://127.0.0.1:${listener.address.port}`
    const [late, silent] = [await rawClient(url), await rawClient(url)]
    // Both are accepted by the time that this one is answered.
    const other = await rawClient(url)
    other.send('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    await other.sees('{}')
    const closed = listener.close(10_000)
    late.send('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    await within(10_000, 'all connections close', Promise.all([late.closed(), silent.closed(), closed]))
    assert.match(late.received, /^HTTP\/1\.1 503 [^]*Retry-After[^]*"service_unavailable"/)
    assert.equal(silent.received, '')
  })
})
