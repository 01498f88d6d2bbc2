import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Exchange } from '../../src/server/exchange.ts'
import { listen, type Application } from '../../src/server/server.ts'
import { chatStage, stageConfig } from '../support/chat-stage.ts'
import { commandLine } from '../support/command-line.ts'
import { rawClient } from '../support/raw-client.ts'
import { eventually, gate, within } from '../support/waiting.ts'
import { turn } from '../support/hand-clock.ts'

const application: Application = {
  answer: async (exchange) => exchange.sendJson('{}'),
  rateOf: async () => undefined,
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

  it('answers a request that was sent before the answer to the last one, and then closes', async (t) => {
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

  it('answers the first request of a new connection, and closes one that sends nothing', async () => {
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

/** Lets everything happen that needs no timer. */
async function turns(): Promise<void> {
  for (let count = 0; count < 50; count++) await turn()
}

/** With timers that a test moves by hand, `eventually` would wait for ever. */
async function until(what: string, isSo: () => boolean): Promise<void> {
  const end = performance.now() + 60_000
  while (!isSo()) {
    if (performance.now() > end) throw new Error(`not within a minute: ${what}`)
    await turn()
  }
}

describe('the time limits of a shutdown', () => {
  it('give a connection without a request half a second', async (t) => {
    const listener = await listen(application, '127.0.0.1', 0)
    const url = `http://127.0.0.1:${listener.address.port}`
    const silent = await rawClient(url)
    const other = await rawClient(url)
    other.send('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    await other.sees('{}')
    t.mock.timers.enable({ apis: ['setTimeout'] })
    let isOver = false
    const closed = listener.close(10_000).then(() => (isOver = true))
    t.mock.timers.tick(499)
    await turns()
    assert.deepEqual([silent.isClosed, isOver], [false, false])
    t.mock.timers.tick(1)
    await until('it is closed', () => silent.isClosed && isOver)
    await closed
  })

  it('give a running request the time that was passed to close(), and not less', async (t) => {
    const seen: Exchange[] = []
    const listener = await listen(
      {
        ...application,
        async answer(exchange) {
          seen.push(exchange)
          await new Promise<void>((resolve) => exchange.onGone(resolve))
        },
      },
      '127.0.0.1',
      0,
    )
    const client = await rawClient(`http://127.0.0.1:${listener.address.port}`)
    client.send('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    await eventually('the request runs', () => seen.length === 1)
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const closed = listener.close(3000)
    t.mock.timers.tick(2999)
    await turns()
    assert.deepEqual([client.isClosed, seen[0]?.isCut], [false, false])
    t.mock.timers.tick(1)
    await closed
    await until('it is cut off', () => client.isClosed)
    assert.equal(seen[0]?.isCut, true)
  })

  for (const [ms, limit] of [
    [0, 1000],
    [999, 1000],
    [60_000, 60_000],
  ] as const) {
    it(`give the last bytes of an answer the rest of the time, but at least a second (${ms} ms)`, async (t) => {
      const listener = await listen(
        {
          ...application,
          answer: async (exchange) => exchange.send(200, 'text/plain', Buffer.alloc(32 * 1024 * 1024)),
        },
        '127.0.0.1',
        0,
      )
      const client = await rawClient(`http://127.0.0.1:${listener.address.port}`)
      client.send('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
      await client.sees('HTTP/1.1 200')
      client.socket.pause()
      t.mock.timers.enable({ apis: ['setTimeout'] })
      let isOver = false
      const closed = listener.close(ms).then(() => (isOver = true))
      await turns()
      // The time that this test has taken so far is less.
      t.mock.timers.tick(limit / 2)
      await turns()
      assert.equal(isOver, false)
      t.mock.timers.tick(limit / 2)
      await closed
      client.leave()
    })
  }
})

describe('a service that stops', () => {
  it('gives requests of callers the drain limit, and those of the operator a second', async (t) => {
    const held = gate()
    const { weir, engine } = await chatStage(t, {
      script: { hold: { afterTokens: 1, until: held.opened } },
      config: { server: { port: 0, admin_port: 0, drain_ms: 600_000 } },
    })
    const answer = weir.chat({ stream: true })
    await engine.arrived(1)
    const operator = await rawClient(weir.adminUrl)
    operator.send(
      `POST /admin/v1/workspaces HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${weir.operatorToken}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{`,
    )
    const stopped = weir.service.stop()
    // More than an operator's request gets.
    await sleep(1500)
    held.open()
    assert.match(await (await answer).text(), /\[DONE\]/)
    await within(60_000, 'the operator’s request is cut off', stopped)
    assert.ok(operator.isClosed || operator.received.includes('Connection: close'))
    operator.leave()
  })

  it('cuts off requests of callers after the drain limit that is in force by then', async (t) => {
    const server = { port: 0, admin_port: 0 }
    const { weir, engine } = await chatStage(t, {
      script: { hold: { afterTokens: 1, until: gate().opened } },
      config: { server: { ...server, drain_ms: 600_000 } },
    })
    const answer = await weir.chat({ stream: true })
    weir.writeConfig(stageConfig([engine.url], { config: { server: { ...server, drain_ms: 0 } } }))
    assert.equal((await commandLine(['reload', '--data', weir.dataDir])).stdout, 'Reloaded: 1 model.\n')
    await within(60_000, 'the answer is cut off', weir.service.stop())
    await assert.rejects(answer.text())
  })
})
