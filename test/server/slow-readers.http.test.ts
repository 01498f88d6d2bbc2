import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { describe, it, type TestContext } from 'node:test'
import { byteBudget, type ByteBudget } from '../../src/shared/byte-budget.ts'
import type { Exchange } from '../../src/server/exchange.ts'
import { listen, type Listener } from '../../src/server/server.ts'
import { rawClient, type RawClient } from '../support/raw-client.ts'
import { eventually, gate, within } from '../support/waiting.ts'

/** Far more than the sockets of both sides hold. */
const BYTES = 40_000_000
const piece = Buffer.alloc(1_000_000, 'x')
const body = Buffer.alloc(BYTES, 'x')

/** Every way to send an answer. */
const ways: Readonly<Record<string, (exchange: Exchange) => Promise<void> | void>> = {
  'a whole answer': (exchange) => exchange.sendAnswer('text/plain', body, {}),
  'a whole answer in parts': (exchange) =>
    exchange.sendAnswer(
      'text/plain',
      Array.from({ length: BYTES / piece.length }, () => piece),
      {},
    ),
  'the rest of an answer that was opened': (exchange) => {
    exchange.openAnswer('text/plain', {})
    exchange.sendAnswer('text/plain', body, {})
  },
  'a text': (exchange) => exchange.send(200, 'text/plain', 'x'.repeat(BYTES)),
  'a download': (exchange) =>
    exchange.sendStream(Readable.from(Array.from({ length: BYTES / piece.length }, () => piece)), {}),
  'a download of text': (exchange) =>
    exchange.sendStream(Readable.from(Array.from({ length: 40 }, () => 'x'.repeat(1_000_000))), {}),
  'an event stream': async (exchange) => {
    exchange.openStream({})
    for (let sent = 0; sent < BYTES; sent += piece.length) {
      const taken = new Promise<void>((resolve) => exchange.onDrain(resolve))
      const gone = new Promise<void>((resolve) => exchange.onGone(resolve))
      if (!exchange.write(piece)) await Promise.race([taken, gone])
    }
    exchange.end('')
  },
}

interface Stage {
  readonly url: string
  readonly memory: ByteBudget
  readonly listener: Listener
}

async function stage(
  t: TestContext,
  answer: (exchange: Exchange) => Promise<void> | void,
  stallMs: number,
): Promise<Stage> {
  const memory = byteBudget(1e12)
  const listener = await listen(
    { answer: async (exchange) => answer(exchange), rateOf: async () => undefined, headers: () => ({}), over() {} },
    '127.0.0.1',
    0,
    { memory, stallMs },
  )
  t.after(() => listener.close(0))
  return { url: `http://127.0.0.1:${listener.address.port}`, memory, listener }
}

async function ask(url: string, path = '/'): Promise<RawClient> {
  const client = await rawClient(url)
  client.send(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
  return client
}

for (const [name, send] of Object.entries(ways)) {
  describe(`the reader of ${name}`, { concurrency: true }, () => {
    it('is disconnected if it reads nothing for a while, and its answer is freed', async (t) => {
      const { url, memory } = await stage(t, send, 300)
      const client = await ask(url)
      client.socket.pause()
      await eventually('the answer is held', () => memory.held() > 0)
      await eventually('the answer is freed', () => memory.held() === 0)
      client.socket.resume()
      await client.closed()
      assert.ok(client.received.length < BYTES, `the reader got ${client.received.length} bytes`)
    })

    // How long it may rest is measured in unit/exchange, where no machine is too slow.
    it('gets everything as long as it keeps reading', async (t) => {
      const { url, memory } = await stage(t, send, 600_000)
      const client = await ask(url)
      let pauses = 0
      let since = 0
      client.socket.on('data', ({ length }) => {
        since += length
        if (since < 2_000_000 || pauses === 9) return
        since = 0
        pauses++
        client.socket.pause()
        setTimeout(() => client.socket.resume(), 30)
      })
      await eventually('it has everything', () => client.received.length >= BYTES, 60_000)
      assert.equal(pauses, 9)
      await eventually('nothing is held', () => memory.held() === 0)
      client.leave()
    })

    it('frees the memory when it disconnects', async (t) => {
      const { url, memory } = await stage(t, send, 60_000)
      const client = await ask(url)
      client.socket.pause()
      await eventually('the answer is held', () => memory.held() > 0)
      client.leave()
      await eventually('the answer is freed', () => memory.held() === 0)
    })

    it('does not keep the service from stopping, and its answer is then freed', async (t) => {
      const { url, memory, listener } = await stage(t, send, 60_000)
      const client = await ask(url)
      client.socket.pause()
      await eventually('the answer is held', () => memory.held() > 0)
      await within(10_000, 'the listener closes', listener.close(100))
      await eventually('the answer is freed', () => memory.held() === 0)
    })
  })
}

describe('memory held for readers', () => {
  it('equals the rest of the answer, until the caller has all of it', async (t) => {
    const { url, memory } = await stage(t, ways['a whole answer']!, 60_000)
    const clients = await Promise.all([1, 2, 3].map(() => ask(url)))
    for (const { socket } of clients) socket.pause()
    await eventually('three answers are held', () => memory.held() === 3 * BYTES)
    for (const { socket } of clients) socket.resume()
    await eventually('all three have theirs', () => clients.every(({ received }) => received.length > BYTES))
    await eventually('nothing is held', () => memory.held() === 0)
    for (const client of clients) client.leave()
  })

  it('is freed if more of the answer arrived after its caller disconnected', async (t) => {
    let over = false
    const send = async (exchange: Exchange): Promise<void> => {
      exchange.holdAnswer(1000)
      await new Promise<void>((resolve) => exchange.onGone(resolve))
      exchange.holdAnswer(2000)
      over = true
    }
    const { url, memory } = await stage(t, send, 60_000)
    const client = await ask(url)
    await eventually('the answer is held', () => memory.held() === 1000)
    client.leave()
    await eventually('the caller is seen to leave', () => over)
    await eventually('nothing is held', () => memory.held() === 0)
  })

  it('is freed, and the reader disconnected, if it reads nothing of complete answers', async (t) => {
    // Each of them is sent in one piece. Together, they are far more than the sockets of both sides hold.
    const small = Buffer.alloc(60_000, 'x')
    const { url, memory, listener } = await stage(t, (exchange) => exchange.sendAnswer('text/plain', small, {}), 300)
    const client = await rawClient(url)
    client.socket.pause()
    for (let sent = 0; memory.held() === 0; sent += 50) {
      client.send('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(50))
      await eventually('they are served or held', () => listener.requestCount() === sent + 50 || memory.held() > 0)
    }
    await eventually('they are freed', () => memory.held() === 0)
    client.socket.resume()
    await client.closed()
    assert.ok(client.received.length < BYTES, `the reader got ${client.received.length} bytes`)
  })

  it('is not used by requests before their turn: each starts when the answer before it has been sent', async (t) => {
    const held = gate()
    t.after(held.open)
    const begun: string[] = []
    const send = async (exchange: Exchange): Promise<void> => {
      begun.push(exchange.path)
      if (exchange.path === '/slow') await held.opened
      exchange.sendAnswer('text/plain', body, {})
    }
    const { url, memory } = await stage(t, send, 60_000)
    const client = await ask(url, '/slow')
    client.socket.pause()
    client.send('GET /quick HTTP/1.1\r\nHost: x\r\n\r\n')
    await (await fetch(`${url}/other`)).arrayBuffer()
    assert.deepEqual(begun, ['/slow', '/other'])
    await eventually('nothing is held', () => memory.held() === 0)
    held.open()
    await eventually('the first answer is held', () => memory.held() === BYTES)
    assert.deepEqual(begun, ['/slow', '/other'])
    client.socket.resume()
    await eventually('both have come', () => client.received.length > 2 * BYTES)
    assert.deepEqual(begun, ['/slow', '/other', '/quick'])
    client.leave()
  })
})
