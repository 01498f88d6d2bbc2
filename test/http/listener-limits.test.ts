import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { listen, type Application } from '../../src/http/server.ts'
import { KEEP_ALIVE_MS } from '../../src/http/wire/outgoing-response.ts'
import { rawClient, type RawClient } from '../support/raw-client.ts'
import { turn } from '../unit/hand-clock.ts'

/** The limits that every listener has unless it is given others, with timers that the test moves by hand. */

const LOOK_MS = 5000
const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'

async function stage(t: TestContext, timer: 'setTimeout' | 'setInterval', answer: Application['answer']) {
  t.mock.timers.enable({ apis: [timer] })
  const application = { answer, look: async () => undefined, headers: () => ({}), over() {} }
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

async function looks(t: TestContext, count: number): Promise<void> {
  for (let look = 0; look < count; look++) t.mock.timers.tick(LOOK_MS)
  for (let turns = 0; turns < 50; turns++) await turn()
}

const isLate = ({ received }: RawClient): boolean => /HTTP\/1\.1 408 [^]*"request_timeout"/.test(received)

describe('a listener', () => {
  it('cuts off a caller that takes nothing of its answer for a minute', async (t) => {
    let isSent = false
    const client = await stage(t, 'setTimeout', (exchange) => {
      exchange.send(200, 'text/plain', Buffer.alloc(32 * 1024 * 1024))
      isSent = true
    })
    client.socket.pause()
    client.send(REQUEST)
    await until('the answer is on its way', () => isSent)
    await looks(t, 0)
    t.mock.timers.tick(59_999)
    await looks(t, 0)
    assert.equal(client.isClosed, false)
    t.mock.timers.tick(1)
    client.socket.resume()
    await until('it is cut off', () => client.isClosed)
    assert.ok(client.received.length < 32 * 1024 * 1024)
  })

  it('gives a head 20 s', async (t) => {
    const client = await stage(t, 'setInterval', (exchange) => exchange.sendJson('{}'))
    client.send(REQUEST)
    await until('it serves', () => client.received.endsWith('{}'))
    client.send('GET / HTTP/1.1\r\n')
    await looks(t, 0)
    // One more look, because the head may have begun just before one.
    await looks(t, 5)
    assert.equal(isLate(client), false)
    await looks(t, 1)
    await until('it is refused', () => isLate(client))
  })

  it('gives a body 300 s', async (t) => {
    let isReading = false
    const client = await stage(t, 'setInterval', (exchange) => {
      isReading = true
      return new Promise((resolve) => exchange.request.take({ data() {}, end: resolve, cut: resolve }))
    })
    client.send('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nx')
    await until('the body is read', () => isReading)
    await looks(t, 61)
    assert.equal(isLate(client), false)
    await looks(t, 1)
    await until('it is refused', () => isLate(client))
  })

  it('keeps an idle connection as long as it says, and then closes it without a word', async (t) => {
    const client = await stage(t, 'setInterval', (exchange) => exchange.sendJson('{}'))
    client.send(REQUEST)
    await until('it serves', () => client.received.endsWith('{}'))
    const { length } = client.received
    await looks(t, KEEP_ALIVE_MS / LOOK_MS + 1)
    assert.equal(client.isClosed, false)
    await looks(t, 1)
    await until('it is closed', () => client.isClosed)
    assert.equal(client.received.length, length)
  })
})
