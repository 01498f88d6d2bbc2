import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { allowance, viewBy } from '../../src/workspaces/rate-limits/rate-limit.ts'
import { readJsonObject } from '../../src/server/body.ts'
import { listen, type Application } from '../../src/server/server.ts'
import { roomInThisMinute } from '../support/minute.ts'
import { rawChat, rawClient } from '../support/raw-client.ts'
import { scriptedEngine, type Script, type ScriptedEngine } from '../support/scripted-engine.ts'
import { modelEntry, startWeir, withWeir, type TestWeir } from '../support/weir.ts'
import { eventually, gate, within } from '../support/waiting.ts'

const WORKSPACE_LIMIT = 100_000
const ADDRESS_LIMIT = 50_000
const limits = { token_budget: 100_000, max_concurrent_requests: 1, max_queue_depth: 1, max_wait_ms: 1000 }

let engine: ScriptedEngine
let weir: TestWeir

before(async () => {
  engine = await scriptedEngine()
  weir = await startWeir({
    server: { port: 0, admin_port: 0, max_body_bytes: 4096 },
    rate_limit: { requests_per_minute: WORKSPACE_LIMIT, unauthenticated_per_minute: ADDRESS_LIMIT },
    models: [
      modelEntry([engine.url]),
      modelEntry([], { id: 'meta/narrow', aliases: [], serverless: { engine: engineAt(engine.url), limits } }),
      modelEntry([], { id: 'meta/none', aliases: [], serverless: {} }),
      modelEntry([], { id: 'meta/reserved', aliases: [], serverless: undefined, dedicated: [{ workspace: 'acme' }] }),
    ],
  })
})
after(async () => {
  await weir.stop()
  await engine.close()
})

function engineAt(url: string): object {
  return { kind: 'openai', urls: [url], model: 'engine-name' }
}

/** What a response says about the allowance. */
interface RateAnswer {
  readonly status: number
  readonly headers: Headers
  readonly limit: number
  readonly remaining: number
  readonly reset: number
  readonly code: string | undefined
}

async function answerOf(answer: Promise<Response>): Promise<RateAnswer> {
  const response = await answer
  return read(response.status, response.headers, await response.text())
}

/** The same, from the bytes of a response. */
function answerIn(text: string): RateAnswer {
  const [head = '', body = ''] = text.split('\r\n\r\n', 2)
  const [statusLine = '', ...lines] = head.split('\r\n')
  const pairs = lines.map((line) => line.split(': ', 2) as [string, string])
  return read(Number(statusLine.split(' ')[1]), new Headers(pairs), body)
}

function read(status: number, headers: Headers, body: string): RateAnswer {
  const whole = (name: string): number => {
    const value = headers.get(name)
    assert.ok(value !== null, `${status} has no ${name}`)
    assert.match(value, /^\d+$/, name)
    return Number(value)
  }
  const code = /"code":"(\w+)"/.exec(body)?.[1]
  assert.match(headers.get('x-request-id') ?? '', /^\w{20,}$/, `${status} has no X-Request-Id`)
  const [limit, remaining, reset] = ['Limit', 'Remaining', 'Reset'].map((it) => whole(`x-ratelimit-${it}`))
  return { status, headers, code, limit: limit ?? 0, remaining: remaining ?? 0, reset: reset ?? 0 }
}

async function keyOf(workspace: string, requestsPerMinute: number): Promise<string> {
  await weir.admin('POST', '/admin/v1/workspaces', { name: workspace })
  await weir.admin('PATCH', `/admin/v1/workspaces/${workspace}`, { requests_per_minute: requestsPerMinute })
  const response = await weir.admin('POST', '/admin/v1/keys', { workspace })
  return ((await response.json()) as { key: string }).key
}

describe('a workspace within a minute', () => {
  it('[R1, R3] gets exactly its limit, however many requests arrive at once', async () => {
    const key = await keyOf('crowd', 25)
    await roomInThisMinute()
    const answers = await Promise.all(Array.from({ length: 60 }, () => answerOf(weir.call('/models', { key }))))
    const accepted = answers.filter(({ status }) => status === 200)
    const refused = answers.filter(({ status }) => status !== 200)
    assert.equal(accepted.length, 25)
    for (const { status, code, remaining } of refused) {
      assert.deepEqual([status, code, remaining], [429, 'rate_limit_exceeded', 0])
    }
    // Headers say what is left when they are sent, which may be after others have been counted.
    assert.ok(accepted.every(({ remaining }) => remaining >= 0 && remaining < 25))
    assert.ok(accepted.some(({ remaining }) => remaining === 0))
  })

  it('[R3, X2] over its limit is answered with the seconds left, from 1 to 59', async () => {
    const key = await keyOf('hasty', 1)
    await roomInThisMinute()
    await answerOf(weir.call('/models', { key }))
    const response = await weir.call('/models', { key })
    const seconds = Number(response.headers.get('retry-after'))
    const { error } = (await response.json()) as { error: Record<string, unknown> }
    assert.deepEqual(
      { status: response.status, ...error, message: '' },
      { status: 429, type: 'rate_limit_error', param: null, code: 'rate_limit_exceeded', message: '' },
    )
    assert.ok(Number.isInteger(seconds) && seconds >= 1 && seconds <= 59, String(seconds))
    const left = Number(response.headers.get('x-ratelimit-reset')) - Date.now() / 1000
    assert.ok(Math.abs(seconds - left) <= 2, `${seconds} is not about ${left}`)
  })

  it('[R1] is charged for every kind of request, good or bad, but not for health checks and documentation', async () => {
    const key = await keyOf('busy', 1000)
    await roomInThisMinute()
    const spending: [string, RequestInit, number][] = [
      ['/models', {}, 200],
      ['/queue/status', {}, 200],
      ['/nothing', {}, 404],
      ['/models', { method: 'DELETE' }, 405],
      ['/chat/completions', { method: 'POST', body: 'x' }, 415],
      ['/models?scope=everything', {}, 400],
    ]
    let left = 1000
    for (const [path, init, status] of spending) {
      const answer = await answerOf(weir.call(path, { key, ...init }))
      assert.deepEqual([answer.status, answer.remaining], [status, --left], path)
    }
    for (const path of ['/healthz', '/readyz', '/docs', '/api/v1/openapi.json']) {
      const answer = await answerOf(weir.call(weir.service.url + path, { key }))
      assert.deepEqual([answer.status, answer.limit], [200, ADDRESS_LIMIT], path)
    }
    assert.equal((await answerOf(weir.call('/models', { key }))).remaining, left - 1)
  })

  it('[R3] over its limit gets no work done: no body is read, no engine is called', async () => {
    const key = await keyOf('done', 1)
    await roomInThisMinute()
    await answerOf(weir.call('/models', { key }))
    const calls = engine.calls.length
    assert.equal((await answerOf(weir.chat({}, { key }))).code, 'rate_limit_exceeded')
    assert.equal((await answerOf(weir.call('/nothing', { key }))).code, 'rate_limit_exceeded')
    assert.equal(engine.calls.length, calls)
  })
})

describe('the three rate limit headers', () => {
  const json = { 'content-type': 'application/json' }
  const post = (body: string, headers: Record<string, string> = json) =>
    answerOf(weir.call('/chat/completions', { method: 'POST', headers, body }))
  const ofModel = (model: string) => answerOf(weir.chat({ model }))

  const cases: Readonly<Record<string, [status: number, code: string | undefined, () => Promise<RateAnswer>]>> = {
    'a list': [200, undefined, () => answerOf(weir.call('/models'))],
    'an answer': [200, undefined, () => answerOf(weir.chat({}))],
    'a stream': [200, undefined, () => answerOf(weir.chat({ stream: true }))],
    'a body that is not JSON': [400, 'invalid_json', () => post('{')],
    'a bad parameter': [400, 'invalid_value', () => answerOf(weir.chat({ temperature: 9 }))],
    'a bad query': [400, 'invalid_value', () => answerOf(weir.call('/models?mode=x'))],
    'a model of others': [403, 'model_access_denied', () => ofModel('meta/reserved')],
    'an unknown path': [404, 'unknown_url', () => answerOf(weir.call('/nothing'))],
    'a path outside /api/v1': [404, 'unknown_url', () => answerOf(weir.call(`${weir.service.url}/nothing`))],
    'a model that does not exist': [404, 'model_not_found', () => ofModel('meta/nothing')],
    'a wrong method': [405, 'method_not_allowed', () => answerOf(weir.call('/models', { method: 'PUT' }))],
    HEAD: [405, undefined, () => answerOf(weir.call('/models', { method: 'HEAD' }))],
    OPTIONS: [405, 'method_not_allowed', () => answerOf(weir.call('/models', { method: 'OPTIONS' }))],
    'a body too large': [413, 'request_too_large', () => post(`{"x":"${'x'.repeat(5000)}"}`)],
    'another type of body': [415, 'unsupported_media_type', () => post('a=b', { 'content-type': 'text/plain' })],
    'a model without an engine': [503, 'model_not_configured', () => ofModel('meta/none')],
    'an engine that fails': [
      502,
      'upstream_error',
      async () => {
        engine.script = { refuse: { status: 500, body: {} } }
        const answer = await answerOf(weir.chat({}))
        engine.script = {}
        return answer
      },
    ],
  }
  for (const [name, [status, code, ask]] of Object.entries(cases)) {
    it(`[R2] are on ${status}: ${name}`, async () => {
      const answer = await ask()
      assert.deepEqual([answer.status, answer.code, answer.limit], [status, code, WORKSPACE_LIMIT])
      assertIsNow(answer)
    })
  }

  it('[R2, Q4, Q6] are on 429 queue_full and on 503 model_overloaded', async () => {
    const { opened, open } = gate()
    engine.script = { hold: { afterTokens: 0, until: opened } }
    const running = ofModel('meta/narrow')
    await eventually('the first is at the engine', () => engine.running === 1)
    const waiting = ofModel('meta/narrow')
    const depth = async (): Promise<number> => {
      const response = await weir.call('/queue/status')
      const { data } = (await response.json()) as { data: { model: string; queue_depth: number }[] }
      return data.find(({ model }) => model === 'meta/narrow')?.queue_depth ?? 0
    }
    // The wait may be over before anybody could look, so the third is sent without checking.
    const [full, overloaded] = await Promise.all([ofModel('meta/narrow'), waiting])
    assert.deepEqual(
      [full, overloaded].map((it) => it.code).sort((one = '', other = '') => one.localeCompare(other)),
      ['model_overloaded', 'queue_full'],
    )
    for (const answer of [full, overloaded]) assertIsNow(answer)
    assert.equal(await depth(), 0)
    open()
    assert.equal((await running).status, 200)
    engine.script = {}
  })

  it('[R2] report the allowance of the address if there is no valid key', async () => {
    const noKey = await answerOf(weir.call('/models', { key: null }))
    assert.deepEqual([noKey.status, noKey.code, noKey.limit], [401, 'missing_api_key', ADDRESS_LIMIT])
    const badKey = await answerOf(weir.call('/nothing', { key: 'weir_bad' }))
    assert.deepEqual([badKey.status, badKey.code, badKey.limit], [401, 'invalid_api_key', ADDRESS_LIMIT])
    assertIsNow(badKey)
  })

  const open = { '/': 302, '/docs': 200, '/api/v1/openapi.json': 200, '/healthz': 200, '/readyz': 200 }
  for (const [path, status] of Object.entries(open)) {
    it(`[R2] are on ${path}, which needs no key`, async () => {
      const answer = await answerOf(weir.call(weir.service.url + path, { key: null, redirect: 'manual' }))
      assert.deepEqual([answer.status, answer.limit], [status, ADDRESS_LIMIT])
      assertIsNow(answer)
    })
  }

  const request = (lines: readonly string[]): string => [...lines, '', ''].join('\r\n')
  const bytes: Readonly<Record<string, [status: number, text: () => string]>> = {
    'not HTTP at all': [400, () => 'hello\r\n\r\n'],
    'an unknown method': [400, () => request(['FETCH / HTTP/1.1', 'Host: x'])],
    'a header without a colon': [400, () => request(['GET /healthz HTTP/1.1', 'Host: x', 'nonsense'])],
    'two lengths': [
      400,
      () => request(['POST /api/v1/chat/completions HTTP/1.1', 'Host: x', 'Content-Length: 1', 'Content-Length: 2']),
    ],
    'a length that is not a number': [400, () => request(['POST / HTTP/1.1', 'Host: x', 'Content-Length: many'])],
    'headers too large': [431, () => request(['GET / HTTP/1.1', 'Host: x', `X-Large: ${'x'.repeat(20_000)}`])],
    'no Host': [400, () => request(['GET /api/v1/models HTTP/1.1', 'Connection: close'])],
    'an unknown expectation': [
      401,
      () => request(['GET /api/v1/models HTTP/1.1', 'Host: x', 'Expect: the-unexpected', 'Connection: close']),
    ],
    'an upgrade': [
      401,
      () => request(['GET /api/v1/models HTTP/1.1', 'Host: x', 'Connection: Upgrade, close', 'Upgrade: websocket']),
    ],
    'HTTP/1.0': [401, () => request(['GET /api/v1/models HTTP/1.0'])],
    'an absolute address with an unknown path': [
      404,
      () =>
        request(['GET http://x/nowhere HTTP/1.1', 'Host: x', `Authorization: Bearer ${weir.key}`, 'Connection: close']),
    ],
  }
  for (const [name, [status, text]] of Object.entries(bytes)) {
    it(`[R2, X1] are on ${status}: ${name}`, async () => {
      const client = await rawClient(weir.service.url)
      client.send(text())
      await client.closed()
      const answer = answerIn(client.received)
      assert.equal(answer.status, status, client.received)
      assert.equal(answer.limit, status === 404 ? WORKSPACE_LIMIT : ADDRESS_LIMIT)
      assertIsNow(answer)
      const { error } = JSON.parse(client.received.split('\r\n\r\n')[1] ?? '') as { error: object }
      assert.deepEqual(Object.keys(error).sort(), ['code', 'message', 'param', 'type'])
    })
  }

  for (const stream of [false, true]) {
    it(`[R2] are computed when they are sent, not when the request arrived (stream: ${stream})`, async () => {
      const key = await keyOf(`slow-${stream}`, 1000)
      await roomInThisMinute()
      const { opened, open: goOn } = gate()
      engine.script = stream ? { handle: streamAfter(opened) } : { hold: { afterTokens: 0, until: opened } }
      const seen = engine.calls.length
      const slow = answerOf(weir.chat({ stream }, { key }))
      await engine.arrived(seen + 1)
      for (let index = 0; index < 3; index++) await answerOf(weir.call('/models', { key }))
      goOn()
      engine.script = {}
      assert.equal((await slow).remaining, 1000 - 4)
    })
  }

  it('[R2, X1] are on 503 while the service stops', async (t) => {
    await roomInThisMinute()
    const stopping = await startWeir({ models: [modelEntry([engine.url])] })
    let stopped: Promise<void> | undefined
    const stop = (): Promise<void> => (stopped ??= stopping.stop())
    t.after(stop)
    const client = await rawClient(stopping.service.url)
    const request = rawChat(stopping.key, {})
    // When the stop comes, the service has counted the request and waits for its second half.
    client.send(request.slice(0, -10))
    let asked = 0
    await eventually('the service has half of the request', async () => {
      asked++
      return (await answerOf(stopping.call('/models'))).remaining === 600 - asked - 1
    })
    void stop()
    client.send(request.slice(-10))
    await client.closed()
    const answer = answerIn(client.received)
    assert.deepEqual([answer.status, answer.code, answer.limit], [503, 'service_unavailable', 600])
    assert.equal(answer.headers.get('retry-after'), '2')
    assert.equal(answer.headers.get('connection'), 'close')
    await stop()
  })
})

describe('an address without a valid key', () => {
  it('[R2, K1] has an allowance of its own, which slows down guessing and does not affect callers with a key', async () => {
    await withWeir({ rate_limit: { unauthenticated_per_minute: 5 }, models: [] }, async (small) => {
      await roomInThisMinute()
      const answers: RateAnswer[] = []
      for (let index = 0; index < 8; index++) {
        answers.push(await answerOf(small.call('/models', { key: index % 2 ? null : `weir_guess${index}` })))
      }
      assert.deepEqual(
        answers.map(({ status, limit, remaining }) => [status, limit, remaining]),
        [
          [401, 5, 4],
          [401, 5, 3],
          [401, 5, 2],
          [401, 5, 1],
          [401, 5, 0],
          [429, 5, 0],
          [429, 5, 0],
          [429, 5, 0],
        ],
      )
      const seconds = Number(answers.at(-1)?.headers.get('retry-after'))
      assert.ok(seconds >= 1 && seconds <= 59)
      const good = await answerOf(small.call('/models'))
      assert.deepEqual([good.status, good.limit, good.remaining], [200, 600, 599])
    })
  })
})

describe('a request that takes too long to arrive', () => {
  /** `lookUp`: resolves when the rate limiter answers, which may take a while if it runs on another machine. */
  async function impatient(
    work: (url: string, over: number[]) => Promise<void>,
    lookUp: () => Promise<void> = async () => {},
  ): Promise<void> {
    const over: number[] = []
    const application: Application = {
      async answer(exchange) {
        await readJsonObject(exchange, 1000)
        exchange.send(200, 'application/json', '{}')
      },
      async rateOf() {
        await lookUp()
        return viewBy(
          () => allowance(undefined, 7, Date.now()),
          () => undefined,
          undefined,
        )
      },
      headers({ rate }) {
        const shown = rate?.allowance()
        return {
          'X-RateLimit-Limit': String(shown?.limit),
          'X-RateLimit-Remaining': String(shown?.remaining),
          'X-RateLimit-Reset': String(shown?.resetAt),
        }
      },
      over: (exchange) => over.push(exchange.status),
    }
    const listener = await listen(application, '127.0.0.1', 0, { requestMs: 200, checkMs: 50 })
    try {
      await work(`http://127.0.0.1:${listener.address.port}`, over)
    } finally {
      // An exchange that was answered but never ended would keep the service from stopping.
      await within(5000, 'the listener closes', listener.close(1000))
    }
  }

  const start = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 10\r\n'
  const slow = { 'in its headers': start, 'in its body': `${start}\r\n{"a"` }
  for (const [where, text] of Object.entries(slow)) {
    for (const ms of [0, 100]) {
      it(`[R2, X1] gets 408 with the three headers, and ends: ${where}, with a limiter that takes ${ms} ms`, async () => {
        await impatient(
          async (url, over) => {
            const client = await rawClient(url)
            client.send(text)
            await client.closed()
            const answer = answerIn(client.received)
            assert.deepEqual([answer.status, answer.code, answer.limit], [408, 'request_timeout', 7])
            assert.equal(answer.headers.get('retry-after'), '1')
            assert.equal(answer.headers.get('connection'), 'close')
            if (where === 'in its body') await eventually('it is over', () => over.length === 1)
            assert.deepEqual(over, where === 'in its body' ? [408] : [])
          },
          () => sleep(ms),
        )
      })
    }
  }

  it('[R2, X1] gets one 400 with the three headers for bytes that are not HTTP, however many follow', async () => {
    const { opened, open } = gate()
    let lookUps = 0
    await impatient(
      async (url) => {
        const client = await rawClient(url)
        for (let chunk = 0; chunk < 5; chunk++) {
          client.send('this is not HTTP\r\n\r\n')
          await sleep(10)
        }
        open()
        await client.closed()
        const answer = answerIn(client.received)
        assert.deepEqual([answer.status, answer.code, answer.limit], [400, 'invalid_value', 7])
        assert.equal(client.received.match(/^HTTP\/1\.1 \d/gm)?.length, 1)
      },
      () => {
        lookUps++
        return opened
      },
    )
    assert.equal(lookUps, 1)
  })

  it('is not cut off if it arrives in time', async () => {
    await impatient(async (url, over) => {
      const client = await rawClient(url)
      client.send(`${start}\r\n{"a"`)
      client.send(':1234}')
      await client.sees('HTTP/1.1 200')
      await eventually('it is over', () => over.length === 1)
      client.leave()
    })
  })
})

/** An engine that stays silent until the gate opens, and then streams. */
function streamAfter(opened: Promise<void>): NonNullable<Script['handle']> {
  return async (_call, response) => {
    await opened
    const choices = [{ index: 0, delta: { content: 'Hi' }, finish_reason: 'stop' }]
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end(`data: ${JSON.stringify({ choices })}\n\ndata: [DONE]\n\n`)
  }
}

/** The reset is within the next minute. */
function assertIsNow({ reset }: RateAnswer): void {
  const left = reset - Date.now() / 1000
  assert.ok(left > -2 && left <= 60, `the window resets in ${left} s`)
}
