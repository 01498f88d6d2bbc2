import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { CallerLeft } from '../../src/shared/errors.ts'
import { listen } from '../../src/server/server.ts'
import { refusalOf, stageConfig } from '../support/chat-stage.ts'
import { sharedStage } from '../support/shared-stage.ts'
import { looseExchange, type ScriptedResponse } from '../support/exchange-listener.ts'
import { rawChat, rawClient } from '../support/raw-client.ts'
import { scriptedEngine, type Script } from '../support/scripted-engine.ts'
import { eventually, gate, within } from '../support/waiting.ts'
import { residentBytes, weirProcess } from '../support/weir-process.ts'
import { readEvents, startWeir, type TestWeir } from '../support/weir.ts'

// Mistakes that are easy to make in a gateway, each with a test that would catch it.

const answer = JSON.stringify({
  choices: [{ index: 0, message: { content: 'Hello' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1 },
})

/** An engine that accepts a call and never answers. */
const silent: Script = { handle: (_call, response) => new Promise((resolve) => response.once('close', resolve)) }

async function lane(weir: TestWeir): Promise<{ queue_depth: number; in_flight_requests: number }> {
  const { data } = (await (await weir.call('/queue/status')).json()) as {
    data: { queue_depth: number; in_flight_requests: number }[]
  }
  return data[0] ?? { queue_depth: -1, in_flight_requests: -1 }
}

describe('trap 1: a request’s close event is emitted when its body has been read', () => {
  it('a caller that has sent everything and waits is still connected', async (t) => {
    const held = gate()
    const { weir, engine } = await sharedStage(t, {
      script: () => ({
        async handle(_call, response) {
          await held.opened
          response.end(answer)
        },
      }),
      limits: { max_concurrent_requests: 1 },
    })
    const running = weir.chat({})
    await engine.arrived(1)
    const waiting = weir.chat({})
    await eventually('one waits', async () => (await lane(weir)).queue_depth === 1)
    await sleep(100)
    assert.deepEqual([(await lane(weir)).in_flight_requests, (await lane(weir)).queue_depth], [1, 1])
    held.open()
    assert.deepEqual([(await running).status, (await waiting).status], [200, 200])
  })

  it('requests that are sent before an answer wait for their turn, and are dropped when the caller disconnects', async (t) => {
    const { weir, engine } = await sharedStage(t, { script: silent, limits: { max_concurrent_requests: 2 } })
    const client = await rawClient(weir.base)
    for (let sent = 0; sent < 4; sent++) client.send(rawChat(weir.key, {}))
    await engine.arrived(1)
    assert.deepEqual(await lane(weir).then((it) => [it.in_flight_requests, it.queue_depth]), [1, 0])
    client.leave()
    await within(5000, 'the engine is notified', engine.left(1))
    await eventually('no request is left', async () => (await lane(weir)).in_flight_requests === 0)
    await eventually('it has its row', async () => (await weir.ledger()).length === 1)
    assert.equal(engine.calls.length, 1)
  })
})

describe('trap 2: an unread body hides that the caller has disconnected', () => {
  it('a request joins the queue only when it has arrived completely', async (t) => {
    const { weir, engine } = await sharedStage(t, {
      script: silent,
      limits: { max_concurrent_requests: 1, max_queue_depth: 1 },
    })
    const first = await rawClient(weir.base)
    first.send(rawChat(weir.key, {}))
    await engine.arrived(1)
    const half = await rawClient(weir.base)
    const text = rawChat(weir.key, { unknown: 'x'.repeat(100_000) })
    half.send(text.slice(0, 60_000))
    await sleep(100)
    assert.equal((await lane(weir)).queue_depth, 0)
    half.send(text.slice(60_000))
    await eventually('now it waits', async () => (await lane(weir)).queue_depth === 1)
    half.leave()
    await eventually('it is seen to leave', async () => (await lane(weir)).queue_depth === 0)
    first.leave()
  })

  it('a request may take longer than the time limit for sending it; one that does not arrive in time gets 408', async (t) => {
    const listener = await listen(
      {
        async answer(exchange) {
          await new Promise<void>((end) => exchange.request.take({ data() {}, end, cut: end }))
          if (!exchange.request.isComplete) throw new CallerLeft()
          await sleep(1200)
          exchange.sendJson('{"held":true}')
        },
        rateOf: async () => undefined,
        headers: () => ({}),
        over() {},
      },
      '127.0.0.1',
      0,
      { requestMs: 300, checkMs: 50 },
    )
    t.after(() => listener.close(0))
    const url = `http://127.0.0.1:${listener.address.port}`
    const slow = await rawClient(url)
    slow.send('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab')
    const held = await fetch(url, { method: 'POST', body: 'hello' })
    assert.equal(held.status, 200)
    assert.deepEqual(await held.json(), { held: true })
    await slow.closed()
    assert.match(slow.received, /^HTTP\/1\.1 408 [^]*"code":"request_timeout"/)
  })
})

describe('trap 3: a peer that vanished silently', () => {
  it('is found by TCP keep-alive on the connections of callers, starting after 5 s of silence', async (t) => {
    const { weir } = await sharedStage(t)
    const client = await rawClient(weir.base)
    client.send('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
    await client.sees('alive')
    const { port } = client.socket.address() as AddressInfo
    // The kernel's list of connections: "tr" is the kind of timer that runs (02: keep-alive), "when" its hundredths.
    const hex = (it: number): string => it.toString(16).toUpperCase().padStart(4, '0')
    const line = readFileSync('/proc/net/tcp', 'utf8')
      .split('\n')
      .map((it) => it.trim().split(/\s+/))
      .find(
        ([, local, remote]) =>
          local?.endsWith(`:${hex(Number(new URL(weir.base).port))}`) && remote?.endsWith(`:${hex(port)}`),
      )
    assert.ok(line, 'the connection is not listed')
    const [kind, when] = (line[5] ?? '').split(':')
    assert.equal(kind, '02', 'no keep-alive timer')
    const hundredths = Number.parseInt(when ?? '', 16)
    assert.ok(hundredths > 0 && hundredths <= 550, `${hundredths / 100} s`)
    client.leave()
  })
})

describe('trap 4: an engine that dies in the middle of an answer', () => {
  for (const [what, end] of [
    ['a reset', (response: ServerResponse): unknown => response.socket?.resetAndDestroy()],
    ['a clean end of its connection', (response: ServerResponse): unknown => response.end()],
  ] as const) {
    it(`${what} does not end an answer: the caller gets an error, and no [DONE]`, async (t) => {
      const { weir } = await sharedStage(t, {
        script: {
          async handle(_call, response) {
            response.useChunkedEncodingByDefault = false
            response.writeHead(200, { 'content-type': 'text/event-stream', connection: 'close' })
            response.write('data: {"choices":[{"index":0,"delta":{"content":"Hel"},"finish_reason":null}]}\n\n')
            await sleep(30)
            end(response)
          },
        },
      })
      const events = await within(5000, 'the end', readEvents(await weir.chat({ stream: true })))
      assert.match(events.at(-1) ?? '', /"code":"upstream_error"/)
      assert.ok(!events.includes('[DONE]'))
    })
  }
})

describe('trap 5: slow readers', () => {
  it('an answer is not buffered for a caller that does not read it', async (t) => {
    const engine = await scriptedEngine()
    const word = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'x'.repeat(32_000) }, finish_reason: null }] })}\n\n`
    let said = 0
    engine.script = {
      async handle(_call, response) {
        let wake: () => void
        response.on('drain', () => wake())
        response.on('close', () => wake())
        while (said < 200_000_000 && !response.destroyed) {
          const awake = new Promise<void>((resolve) => (wake = resolve))
          said += word.length
          if (!response.write(word)) await awake
        }
      },
    }
    const weir = await weirProcess(stageConfig([engine.url]))
    t.after(async () => {
      await weir.remove()
      await engine.close()
    })
    const before = residentBytes(weir.pid)
    const client = await rawClient(weir.base)
    client.socket.pause()
    client.send(rawChat(weir.key, { stream: true }))
    let last = -1
    await eventually(
      'the engine is held',
      async () => {
        const still = said > 0 && said === last
        last = said
        await sleep(300)
        return still
      },
      30_000,
    )
    const grown = residentBytes(weir.pid) - before
    assert.ok(said < 100_000_000, `the engine has said ${said} bytes`)
    assert.ok(grown < 80_000_000, `the service has grown by ${grown} bytes`)
    client.leave()
    await within(5000, 'the engine is notified', engine.left(1))
  })

  it('a caller that reads nothing for a minute is disconnected', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    let destroyed = 0
    const response: ScriptedResponse = { write: () => false }
    const exchange = looseExchange('POST', response, { cut: () => (destroyed += 1) })
    exchange.openStream({})
    assert.equal(exchange.write('data: 1\n\n'), false)
    t.mock.timers.tick(59_000)
    response.drained?.()
    exchange.write('data: 2\n\n')
    t.mock.timers.tick(59_000)
    assert.equal(destroyed, 0)
    t.mock.timers.tick(1000)
    assert.equal(destroyed, 1)
  })
})

describe('trap 6: the defaults of vLLM', () => {
  it('usage is requested in every stream, with every chunk, whatever the caller asked for', async (t) => {
    const { weir, engine } = await sharedStage(t)
    for (const options of [{}, { stream_options: { include_usage: false } }, { stream_options: null }]) {
      await (await weir.chat({ stream: true, ...options })).text()
      assert.deepEqual(engine.calls.at(-1)?.body['stream_options'], {
        include_usage: true,
        continuous_usage_stats: true,
      })
    }
  })

  it('running usage makes an aborted stream billable', async (t) => {
    const { weir, engine } = await sharedStage(t, {
      script: {
        tokens: Array.from({ length: 300 }, () => 'x'),
        tokenMs: 5,
        continuousUsage: true,
        promptTokens: 432,
      },
    })
    const client = await rawClient(weir.base)
    client.send(rawChat(weir.key, { stream: true }))
    await client.sees('"content":"x"')
    client.leave()
    await engine.left(1)
    await eventually('the row is there', async () => (await weir.ledger()).length === 1)
    const [row] = await weir.ledger()
    assert.deepEqual([row?.outcome, row?.inputTokens], ['caller_left', 432])
    assert.ok(row && row.outputTokens > 0 && row.amount > 0n)
  })

  it('no image URL ever reaches an engine', async (t) => {
    const { weir, engine } = await sharedStage(t, { model: { categories: ['llm', 'vision'] } })
    for (const url of ['http://169.254.169.254/x.png', 'https://example.com/x.png', ' http://example.com/x.png']) {
      const content = [{ type: 'image_url', image_url: { url } }]
      const refusal = await refusalOf(await weir.chat({ messages: [{ role: 'user', content }] }))
      assert.equal(refusal.status, 400, url)
    }
    assert.equal(engine.calls.length, 0)
  })
})

describe('trap 7: JSON that is deep or has very many values', () => {
  const post = (weir: TestWeir, body: string): Promise<Response> =>
    weir.call('/chat/completions', { method: 'POST', headers: { 'content-type': 'application/json' }, body })

  it('200,000 levels are refused, wherever they are, and the service keeps running', async (t) => {
    const { weir } = await sharedStage(t)
    const deep = '['.repeat(200_000) + ']'.repeat(200_000)
    const deeper = '{"a":'.repeat(200_000) + '1' + '}'.repeat(200_000)
    for (const body of [
      deep,
      `{"model":"meta/test-8b","messages":${deep}}`,
      `{"model":"meta/test-8b","messages":[{"role":"user","content":"Hi"}],"metadata":${deeper}}`,
      `{"model":"meta/test-8b","messages":[{"role":"user","content":"Hi"}],"unknown":${deep}}`,
      '['.repeat(200_000),
      '{"model":'.repeat(200_000),
    ]) {
      const refusal = await refusalOf(await post(weir, body))
      assert.deepEqual([refusal.status, refusal.code], [400, 'invalid_json'])
    }
    assert.equal((await weir.chat({})).status, 200)
  })

  it('20 MB of tiny messages are refused without blocking other callers for long', async (t) => {
    const engine = await scriptedEngine()
    const weir = await weirProcess(stageConfig([engine.url]))
    t.after(async () => {
      await weir.remove()
      await engine.close()
    })
    const tiny = '{"role":"user","content":"a"}'
    const body = `{"model":"meta/test-8b","messages":[${Array.from({ length: 660_000 }, () => tiny).join(',')}]}`
    assert.ok(body.length > 19_000_000)
    let longest = 0
    const over = new AbortController()
    const others = (async () => {
      while (!over.signal.aborted) {
        const sentAt = performance.now()
        await (await fetch(weir.base.replace('/api/v1', '/healthz'))).text()
        longest = Math.max(longest, performance.now() - sentAt)
      }
    })()
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${weir.key}` }
    const refusal = await refusalOf(await fetch(`${weir.base}/chat/completions`, { method: 'POST', headers, body }))
    over.abort()
    await others
    assert.deepEqual([refusal.status, refusal.code], [400, 'invalid_json'])
    assert.equal(engine.calls.length, 0)
    assert.ok(longest < 3000, `others waited ${longest} ms`)
  })
})

describe('trap 8: times as text, and dead callers in the queue', () => {
  it('times are whole numbers without an exponent, in headers, bodies and rows', async (t) => {
    const { weir } = await sharedStage(t)
    const response = await weir.chat({})
    assert.match(response.headers.get('x-ratelimit-reset') ?? '', /^\d{10}$/)
    assert.match(response.headers.get('x-queue-wait-ms') ?? '', /^\d+$/)
    assert.match(await response.text(), /"created":\d{10},/)
    const [row] = await weir.ledger()
    assert.ok(row)
    for (const time of [row.startedAt, row.settledAt, row.durationMs, row.queueWaitMs]) {
      assert.ok(Number.isSafeInteger(time))
    }
    assert.match(String(row.startedAt), /^\d{13}$/)
  })

  it('a queued request whose caller died is never admitted', async (t) => {
    const held = gate()
    const { weir, engine } = await sharedStage(t, {
      script: () => ({
        async handle(_call, response) {
          await held.opened
          response.end(answer)
        },
      }),
      limits: { max_concurrent_requests: 1 },
    })
    const running = weir.chat({})
    await engine.arrived(1)
    const dead = await Promise.all([1, 2, 3].map(() => rawClient(weir.base)))
    for (const client of dead) client.send(rawChat(weir.key, { max_tokens: 1 }))
    await eventually('three wait', async () => (await lane(weir)).queue_depth === 3)
    const alive = weir.chat({ max_tokens: 2 })
    await eventually('four wait', async () => (await lane(weir)).queue_depth === 4)
    for (const client of dead) client.leave()
    await eventually('one waits', async () => (await lane(weir)).queue_depth === 1)
    held.open()
    assert.deepEqual([(await running).status, (await alive).status], [200, 200])
    assert.deepEqual(
      engine.calls.map(({ body }) => body['max_tokens']),
      [256, 2],
    )
  })
})

describe('trap 9: keep-alive connections delay the exit', () => {
  it('while draining, each answer has Connection: close, and the connection is closed', async () => {
    const engine = await scriptedEngine()
    const held = gate()
    engine.script = {
      async handle(_call, response) {
        await held.opened
        response.end(answer)
      },
    }
    const weir = await startWeir(
      stageConfig([engine.url], { config: { server: { port: 0, admin_port: 0, drain_ms: 20_000 } } }),
    )
    const client = await rawClient(weir.base)
    client.send(rawChat(weir.key, {}, { Connection: 'keep-alive' }))
    await engine.arrived(1)
    const stopped = weir.stop()
    held.open()
    await client.closed()
    assert.match(client.received, /^HTTP\/1\.1 200 [^]*\r\nConnection: close\r\n[^]*"Hello"/i)
    await within(10_000, 'the service stops', stopped)
    await engine.close()
  })
})

describe('trap 10: tokenizers on the event loop', () => {
  it('100 KB of one letter are counted quickly', async (t) => {
    const { weir, engine } = await sharedStage(t, {
      model: { context_length: 2_000_000 },
      limits: { token_budget: 10_000_000 },
    })
    const content = 'a'.repeat(100_000)
    const startedAt = performance.now()
    for (let sent = 0; sent < 10; sent++) {
      assert.equal((await weir.chat({ messages: [{ role: 'user', content }] })).status, 200)
    }
    const took = performance.now() - startedAt
    assert.ok(took < 5000, `${took} ms for ten`)
    assert.equal(engine.calls.length, 10)
  })
})
