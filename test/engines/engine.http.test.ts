import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { chatStage, refusalOf, stageConfig, type StageOptions } from '../support/chat-stage.ts'
import { freePort } from '../support/free-port.ts'
import { journalDisk } from '../support/journal-disk.ts'
import { rawChat, rawClient } from '../support/raw-client.ts'
import { scriptedEngine, type Script, type ScriptedEngine } from '../support/scripted-engine.ts'
import { sharedStage, sharedWeir } from '../support/shared-stage.ts'
import { eventually, gate, within, type Gate } from '../support/waiting.ts'
import { readEvents, startWeir, type TestWeir } from '../support/weir.ts'

interface Fleet {
  readonly weir: TestWeir
  readonly engines: readonly ScriptedEngine[]
}

/** One model behind several engines. */
async function fleet(t: TestContext, scripts: readonly Script[], options: StageOptions = {}): Promise<Fleet> {
  const engines = await Promise.all(scripts.map(() => scriptedEngine()))
  engines.forEach((engine, index) => (engine.script = scripts[index] ?? {}))
  t.after(() => Promise.all(engines.map((engine) => engine.close())))
  const config = stageConfig(
    engines.map(({ url }) => url),
    options,
  )
  if (!options.config) return { weir: await sharedWeir(config), engines }
  const weir = await startWeir(config)
  t.after(() => weir.stop())
  return { weir, engines }
}

const callsOf = (engines: readonly ScriptedEngine[]): number[] => engines.map(({ calls }) => calls.length)

/** An address where nothing listens. */
async function deadUrl(): Promise<string> {
  return `http://127.0.0.1:${await freePort()}/v1`
}

/** Accepts a call and never answers. */
const silent: Script = { handle: (_call, response) => new Promise((resolve) => response.once('close', resolve)) }

/** Answers when the gate opens. */
const heldBy = (held: Gate): Script => ({
  async handle(_call, response) {
    await held.opened
    response.end(wholeBody)
  },
})

const wholeBody = JSON.stringify({
  choices: [{ index: 0, message: { content: 'Hello' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
})

async function laneOf(weir: TestWeir): Promise<Record<string, unknown>> {
  const { data } = (await (await weir.call('/queue/status')).json()) as { data: Record<string, unknown>[] }
  return data[0] ?? {}
}

async function assertIdle(weir: TestWeir): Promise<void> {
  const { in_flight_requests: running, committed_tokens: tokens, queue_depth: waiting } = await laneOf(weir)
  assert.deepEqual([running, tokens, waiting], [0, 0, 0])
}

describe('the addresses of an engine', () => {
  it('may be a unix socket, with its own prefix or the default one', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-socket-'))
    const engine = await scriptedEngine({ socketPath: join(folder, 'engine.sock') })
    for (const [suffix, path] of [
      ['', '/v1/chat/completions'],
      [':/v2/', '/v2/chat/completions'],
    ] as const) {
      const weir = await sharedWeir(stageConfig([engine.url + suffix]))
      const response = await weir.chat({})
      assert.equal(response.status, 200)
      assert.equal(engine.calls.at(-1)?.path, path)
      assert.deepEqual((await readEvents(await weir.chat({ stream: true }))).at(-1), '[DONE]')
    }
    t.after(async () => {
      await engine.close()
      rmSync(folder, { recursive: true })
    })
  })

  it('may have no path, or a slash at the end', async (t) => {
    const engine = await scriptedEngine()
    const bare = engine.url.replace('/v1', '')
    for (const [url, path] of [
      [bare, '/chat/completions'],
      [`${bare}/deep/v1/`, '/deep/v1/chat/completions'],
    ] as const) {
      const weir = await sharedWeir(stageConfig([url]))
      assert.equal((await weir.chat({})).status, 200)
      assert.equal(engine.calls.at(-1)?.path, path)
    }
    t.after(() => engine.close())
  })

  it('receive the key in api_key_env as a bearer token', async (t) => {
    const { weir, engine } = await sharedStage(t, { engine: { api_key_env: 'ENGINE_KEY' } })
    await weir.chat({})
    assert.equal(engine.calls[0]?.headers.authorization, 'Bearer engine-secret')
  })

  it('reuse connections', async (t) => {
    const { weir, engine } = await sharedStage(t)
    for (let sent = 0; sent < 20; sent++) await (await weir.chat({ stream: sent % 2 === 0 })).text()
    assert.equal(engine.calls.length, 20)
    // One for the calls. The health probe may have opened another.
    assert.ok(engine.connections <= 2, `${engine.connections} connections`)
  })

  it('tolerate a connection that the engine closed in the meantime', async (t) => {
    const { weir, engine } = await sharedStage(t, {
      script: {
        handle(_call, response) {
          response.setHeader('connection', 'close')
          response.end(wholeBody)
        },
      },
    })
    for (let sent = 0; sent < 5; sent++) assert.equal((await weir.chat({})).status, 200)
    assert.equal(engine.calls.length, 5)
  })
})

describe('an engine with several addresses', () => {
  it('a call goes to the address with the fewest calls', async (t) => {
    const gates = [gate(), gate(), gate()] as const
    const { weir, engines } = await fleet(t, gates.map(heldBy))
    const answers = []
    for (let sent = 1; sent <= 6; sent++) {
      answers.push(weir.chat({}))
      await eventually('it arrives', () => callsOf(engines).reduce((sum, count) => sum + count) === sent)
    }
    assert.deepEqual(callsOf(engines), [2, 2, 2])
    gates[1].open()
    await eventually('the second has none left', () => engines[1]?.running === 0)
    for (const sent of [3, 4]) {
      assert.equal((await weir.chat({})).status, 200)
      assert.deepEqual(callsOf(engines), [2, sent, 2])
    }
    gates[0].open()
    gates[2].open()
    for (const answer of answers) assert.equal((await answer).status, 200)
  })

  it('the next address is tried when nothing listens', async (t) => {
    const engine = await scriptedEngine()
    const weir = await startWeir(stageConfig([await deadUrl(), engine.url]))
    t.after(async () => {
      await weir.stop()
      await engine.close()
    })
    for (const stream of [false, true]) {
      const answer = await weir.chat({ stream })
      assert.equal(answer.status, 200)
      await answer.text()
    }
    assert.equal(engine.calls.length, 2)
    await assertIdle(weir)
    assert.deepEqual(
      (await weir.ledger()).map(({ outcome }) => outcome),
      ['completed', 'completed'],
    )
  })

  it('the next address receives the same request after an error that may be local', async (t) => {
    const { weir, engines } = await fleet(t, [{}, {}])
    const [first, second] = engines
    assert.ok(first && second)
    let sent = 0
    for (const status of [401, 403, 404, 429, 500, 502, 503]) {
      first.script = { refuse: { status, body: { error: { message: 'no' } } } }
      for (const stream of [false, true]) {
        const response = await weir.chat({ stream, temperature: status / 1000 })
        assert.equal(response.status, 200, `after a ${status}`)
        await response.text()
        sent++
        assert.deepEqual(callsOf(engines), [sent, sent])
        assert.equal(first.calls.at(-1)?.rawBody, second.calls.at(-1)?.rawBody)
      }
    }
    assert.equal((await weir.ledger()).length, sent)
  })

  it('the next address is tried when the connection breaks before an answer', async (t) => {
    const { weir, engines } = await fleet(t, [
      { handle: (_call, response) => void response.socket?.resetAndDestroy() },
      {},
    ])
    assert.equal((await weir.chat({})).status, 200)
    const [first = 0, second] = callsOf(engines)
    // If a probe has used the connection before, the first one is sent the request once more.
    assert.ok(first >= 1 && first <= 2)
    assert.equal(second, 1)
  })

  it('every address where nothing listens is skipped', async (t) => {
    const engine = await scriptedEngine()
    const weir = await startWeir(stageConfig([await deadUrl(), await deadUrl(), await deadUrl(), engine.url]))
    t.after(async () => {
      await weir.stop()
      await engine.close()
    })
    assert.equal((await weir.chat({})).status, 200)
  })

  it('a request that kills engines reaches two of them, and no more', async (t) => {
    const killed: Script = { handle: (_call, response) => void response.socket?.resetAndDestroy() }
    const { weir, engines } = await fleet(t, [killed, killed, killed, killed])
    for (const stream of [false, true]) {
      const refusal = await refusalOf(await weir.chat({ stream }))
      assert.deepEqual([refusal.status, refusal.code], [502, 'upstream_error'])
    }
    const [first = 0, second = 0, ...others] = callsOf(engines)
    assert.ok(first >= 2 && second >= 2)
    assert.deepEqual(others, [0, 0])
    await assertIdle(weir)
  })

  it('an address with another protocol fails at once, and the next one is tried', async (t) => {
    const ssh = createServer((socket) => {
      socket.on('error', () => {})
      socket.write('SSH-2.0-OpenSSH_9.2p1\r\n')
    })
    await new Promise<void>((resolve) => ssh.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(ssh.address() as AddressInfo).port}/v1`
    const engine = await scriptedEngine()
    const services = await Promise.all([[url], [url, engine.url]].map((urls) => startWeir(stageConfig(urls))))
    t.after(async () => {
      await Promise.all(services.map((weir) => weir.stop()))
      await engine.close()
      ssh.close()
    })
    const [alone, beside] = services
    const { status, code } = await refusalOf(await within(60_000, 'a refusal', alone!.chat({})))
    assert.ok((status === 502 && code === 'upstream_error') || code === 'model_unavailable', code)
    await assertIdle(alone!)
    assert.equal((await within(60_000, 'an answer', beside!.chat({}))).status, 200)
  })

  it('a request is sent to two addresses at most, and the caller gets the error of the second', async (t) => {
    const { weir, engines } = await fleet(t, [
      { refuse: { status: 500, body: {} } },
      { refuse: { status: 429, body: {} } },
      {},
    ])
    const refusal = await refusalOf(await weir.chat({}))
    assert.deepEqual([refusal.status, refusal.code], [503, 'model_overloaded'])
    assert.deepEqual(callsOf(engines), [1, 1, 0])
    await assertIdle(weir)
  })

  it('no other address is tried after a timeout', async (t) => {
    const { weir, engines } = await fleet(t, [silent, {}], { engine: { first_byte_timeout_ms: 1000 } })
    const [first] = engines
    assert.ok(first)
    const refusal = await refusalOf(await within(10_000, 'the answer', weir.chat({})))
    assert.deepEqual([refusal.status, refusal.code], [504, 'upstream_timeout'])
    first.script = { refuse: { status: 504, body: {} } }
    assert.equal((await weir.chat({})).status, 504)
    assert.deepEqual(callsOf(engines), [2, 0])
    await assertIdle(weir)
  })

  it('no other address is tried after a mistake of the caller', async (t) => {
    const refusals = [
      { status: 400, body: { error: { message: 'bad tool' } } },
      { status: 500, body: { error: { message: 'input is too large to process', type: 'server_error' } } },
      { status: 500, body: { error: { message: 'image input is not supported', type: 'server_error' } } },
    ]
    const { weir, engines } = await fleet(t, [{}, {}])
    const [first] = engines
    assert.ok(first)
    for (const [position, refuse] of refusals.entries()) {
      first.script = { refuse }
      assert.equal((await weir.chat({})).status, 400)
      assert.deepEqual(callsOf(engines), [position + 1, 0])
    }
  })

  it('no other address is tried once an answer has started, streaming or not', async (t) => {
    const { weir, engines } = await fleet(t, [{ breakAfter: { tokens: 1, how: 'reset' } }, {}])
    const events = await readEvents(await weir.chat({ stream: true }))
    assert.match(events.at(-1) ?? '', /"code":"upstream_error"/)
    assert.ok(!events.includes('[DONE]'))
    const refusal = await refusalOf(await weir.chat({}))
    assert.deepEqual([refusal.status, refusal.code], [502, 'upstream_error'])
    assert.deepEqual(callsOf(engines), [2, 0])
    await assertIdle(weir)
  })

  it('an answer has started when its headers have arrived', async (t) => {
    const { weir, engines } = await fleet(t, [
      {
        async handle(_call, response) {
          response.writeHead(200, { 'content-type': 'text/event-stream' })
          response.flushHeaders()
          await sleep(20)
          response.destroy()
        },
      },
      {},
    ])
    assert.equal((await weir.chat({ stream: true })).status, 502)
    assert.deepEqual(callsOf(engines), [1, 0])
  })
})

// Each test has a service of its own: they run side by side, because they wait.
describe('the health and the timeouts of engines', { concurrency: true }, () => {
  it('an address that fails its probes gets no calls until it is back', async (t) => {
    const { weir, engines } = await fleet(t, [{}, {}], { config: {} })
    const [first] = engines
    assert.ok(first)
    assert.equal((await weir.chat({})).status, 200)
    assert.deepEqual(callsOf(engines), [1, 0])

    first.healthStatus = 500
    // No calls meanwhile, since their answers would speak for the address. The third probe comes after the second failed.
    const seen = first.probes.length
    await eventually('two probes have failed', () => first.probes.length >= seen + 3, 60_000)
    const before = first.calls.length
    for (let sent = 0; sent < 5; sent++) assert.equal((await weir.chat({})).status, 200)
    assert.equal(first.calls.length, before)

    first.healthStatus = 404
    await eventually(
      'it is back',
      async () => {
        assert.equal((await weir.chat({})).status, 200)
        return first.calls.length > before
      },
      20_000,
    )
  })

  for (const engineOptions of [{ kind: 'openai' }, { kind: 'vllm' }, { kind: 'openai', health: { path: '/ping' } }]) {
    const health = { ...('health' in engineOptions ? engineOptions.health : {}), interval_ms: 1000 }
    const path = health.path ?? (engineOptions.kind === 'vllm' ? '/health' : '/v1/models')
    it(`an engine is not probed while it streams: ${engineOptions.kind} at ${path}`, async (t) => {
      const { weir, engine } = await chatStage(t, {
        script: { tokens: Array.from({ length: 60 }, () => 'x'), tokenMs: 50 },
        engine: { ...engineOptions, health },
      })
      await eventually('the first probe', () => engine.probes.length > 0)
      assert.match(await (await weir.chat({ stream: true, max_tokens: 100 })).text(), /\[DONE\]/)
      assert.deepEqual(
        engine.probes.filter(({ running }) => running > 0),
        [],
      )
      assert.ok(engine.probes.every((probe) => probe.path === path))
      await eventually('the probes go on', () => engine.probes.length > 2, 20_000)
    })
  }

  it('an engine is not down while its only call is silent, even if it would answer no probe', async (t) => {
    const held = gate()
    const { weir, engine } = await chatStage(t, { script: heldBy(held), engine: { health: { interval_ms: 1000 } } })
    await eventually('the first probe', () => engine.probes.length > 0)
    const first = weir.chat({})
    await engine.arrived(1)
    engine.healthStatus = 503
    const second = weir.chat({})
    await engine.arrived(2)
    await sleep(4000)
    assert.deepEqual(
      engine.probes.filter(({ running }) => running > 0),
      [],
    )
    const third = weir.chat({})
    await engine.arrived(3)
    held.open()
    for (const answer of [first, second, third]) assert.equal((await answer).status, 200)
  })

  it('[X2] all down: model_unavailable at once; served again when one is back', async (t) => {
    const url = await deadUrl()
    const weir = await startWeir(stageConfig([url]))
    t.after(() => weir.stop())
    const codes = new Set<string>()
    await eventually(
      'it is known to be down',
      async () => {
        const { code } = await refusalOf(await weir.chat({}))
        codes.add(code)
        return code === 'model_unavailable'
      },
      20_000,
    )
    // A call may have met the address before the health check did.
    codes.delete('upstream_error')
    assert.deepEqual([...codes], ['model_unavailable'])
    const refusal = await refusalOf(await weir.chat({ stream: true }))
    assert.deepEqual(
      [refusal.status, refusal.code, refusal.param, refusal.retryAfter, refusal.type],
      [503, 'model_unavailable', 'model', '10', 'server_error'],
    )
    const readiness = await (await weir.call(`${weir.adminUrl}/readyz`, { key: null })).json()
    assert.deepEqual(readiness, {
      status: 'ready',
      engines: { up: 0, down: 1 },
      coordination: 'alone',
      database: 'up',
    })
    const up = `weir_engine_up{lane="meta/test-8b",address="${url}"}`
    assert.match(await (await weir.admin('GET', '/metrics')).text(), new RegExp(`^${RegExp.escape(up)} 0$`, 'm'))
    const rows = (await weir.ledger()).length
    await weir.chat({})
    assert.equal((await weir.ledger()).length, rows, 'a refusal has a row')

    const engine = await scriptedEngine({ port: Number(new URL(url).port) })
    t.after(() => engine.close())
    await eventually('it is served', async () => (await weir.chat({})).status === 200, 20_000)
  })

  it('[Q9][X2] a model without an engine is not configured', async (t) => {
    const weir = await startWeir(stageConfig(['http://127.0.0.1:1'], { model: { serverless: {} } }))
    t.after(() => weir.stop())
    const response = await weir.chat({})
    assert.equal(response.headers.get('x-should-retry'), 'false')
    const refusal = await refusalOf(response)
    assert.deepEqual(
      [refusal.status, refusal.code, refusal.param, refusal.retryAfter],
      [503, 'model_not_configured', 'model', '10'],
    )
  })

  it('[X1][X2] no answer within first_byte_timeout_ms is a 504', async (t) => {
    const { weir, engine } = await chatStage(t, {
      script: silent,
      engine: { first_byte_timeout_ms: 1000 },
    })
    const refusals = await Promise.all(
      [false, true].map(async (stream) => refusalOf(await within(10_000, 'the answer', weir.chat({ stream })))),
    )
    for (const { status, code, retryAfter } of refusals) {
      assert.deepEqual([status, code, retryAfter], [504, 'upstream_timeout', '5'])
    }
    await within(5000, 'the engine is let go', engine.left(2))
    await assertIdle(weir)
  })

  it('silence for longer than idle_timeout_ms breaks an answer off', async (t) => {
    const { weir, engine } = await chatStage(t, {
      script: {
        async handle(_call, response) {
          response.writeHead(200, { 'content-type': 'text/event-stream' })
          response.write('data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n')
          await new Promise((resolve) => response.once('close', resolve))
        },
      },
      engine: { idle_timeout_ms: 1000 },
    })
    const events = await within(10_000, 'the end', readEvents(await weir.chat({ stream: true })))
    assert.match(events.at(-1) ?? '', /"code":"upstream_error"/)
    await within(5000, 'the engine is let go', engine.left(1))
  })
})

describe('callers that disconnect from engines', () => {
  const cases: Record<string, Script> = {
    'in the middle of a stream': { tokens: ['x', 'x'], hold: { afterTokens: 1, until: new Promise<void>(() => {}) } },
    'before the engine has said a word': silent,
    'while the engine thinks, its headers sent': {
      async handle(_call, response) {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.flushHeaders()
        await new Promise((resolve) => response.once('close', resolve))
      },
    },
  }
  for (const [when, script] of Object.entries(cases)) {
    for (const stream of [true, false]) {
      it(`the engine call is aborted at once: ${when}${stream ? '' : ', not streaming'}`, async (t) => {
        const { weir, engine } = await sharedStage(t, { script })
        const client = await rawClient(weir.base)
        client.send(rawChat(weir.key, { stream }))
        await engine.arrived(1)
        if (stream && script.tokens) await client.sees('"content":"x"')
        client.leave()
        // It never ends by itself, so only an abort frees it.
        await engine.left(1)
        await eventually('the row is there', async () => (await weir.ledger()).length === 1)
        assert.equal((await weir.ledger())[0]?.outcome, 'caller_left')
        await assertIdle(weir)
      })
    }
  }

  it('[Q2] a request that leaves the queue never reaches the engine, and frees its place', async (t) => {
    const held = gate()
    const { weir, engine } = await sharedStage(t, {
      script: heldBy(held),
      limits: { max_concurrent_requests: 1, max_queue_depth: 1 },
    })
    const first = weir.chat({})
    await engine.arrived(1)
    const client = await rawClient(weir.base)
    client.send(rawChat(weir.key, { user: 'second' }))
    await eventually('it waits', async () => (await laneOf(weir))['queue_depth'] === 1)
    client.leave()
    await eventually('its place is free', async () => (await laneOf(weir))['queue_depth'] === 0)
    const third = weir.chat({ temperature: 0.3 })
    await eventually('the third waits', async () => (await laneOf(weir))['queue_depth'] === 1)
    held.open()
    assert.deepEqual([(await first).status, (await third).status], [200, 200])
    assert.deepEqual(
      engine.calls.map(({ body }) => body['temperature']),
      [undefined, 0.3],
    )
    assert.equal((await weir.ledger()).length, 2)
  })
})

describe('the place of an engine call in the lane', () => {
  for (const stream of [false, true]) {
    it(`is free when the engine is done, before the row is durable${stream ? ', streaming' : ''}`, async (t) => {
      const { opened, open } = gate()
      const hold = { afterTokens: 0, until: opened }
      const { weir, engine } = await sharedStage(t, { script: { hold }, limits: { max_concurrent_requests: 1 } })
      const disk = journalDisk(t, weir.dataDir)
      const client = await rawClient(weir.base)
      client.send(rawChat(weir.key, { stream }))
      await engine.arrived(1)
      await disk.holdDuring(async () => {
        open()
        await eventually('the lane is empty', async () => (await laneOf(weir))['in_flight_requests'] === 0)
        assert.doesNotMatch(client.received, /\[DONE\]|"chat\.completion"/)
      })
      await client.sees(stream ? '[DONE]' : '"chat.completion"')
      client.leave()
    })
  }
})

describe('the error statuses of engines', () => {
  const openAi = (message: string, more: object = {}): object => ({ error: { message, type: 'x', code: 'y', ...more } })
  const cases: readonly (readonly [
    what: string,
    refuse: { status: number; body: unknown },
    expected: readonly [status: number, code: string, param: string | null, retryAfter: string | null],
    message: RegExp,
  ])[] = [
    [
      '400 in the words of OpenAI',
      { status: 400, body: openAi('bad grammar', { param: 'response_format' }) },
      [400, 'invalid_value', 'response_format', null],
      /^bad grammar$/,
    ],
    [
      '400 of vLLM',
      { status: 400, body: { object: 'error', message: 'bad grammar' } },
      [400, 'invalid_value', null, null],
      /^bad grammar$/,
    ],
    [
      '422 of FastAPI',
      { status: 422, body: { detail: 'bad grammar' } },
      [400, 'invalid_value', null, null],
      /^bad grammar$/,
    ],
    [
      '422 with a list',
      { status: 422, body: { detail: [{ loc: ['body'] }] } },
      [400, 'invalid_value', null, null],
      /./,
    ],
    [
      '400 with a bare error',
      { status: 400, body: { error: 'bad grammar' } },
      [400, 'invalid_value', null, null],
      /^bad grammar$/,
    ],
    ['400 without a message', { status: 400, body: 'oops' }, [400, 'invalid_value', null, null], /./],
    [
      '400 about the context (vLLM)',
      {
        status: 400,
        body: openAi("This model's maximum context length is 8192 tokens. However, you requested 9000 tokens"),
      },
      [400, 'context_length_exceeded', 'messages', null],
      /maximum context length/,
    ],
    [
      '400 about the context (llama.cpp)',
      { status: 400, body: openAi('the request exceeds the available context size, try increasing it') },
      [400, 'context_length_exceeded', 'messages', null],
      /maximum context length/,
    ],
    [
      '500 about the context (llama.cpp)',
      { status: 500, body: openAi('input is too large to process. increase the physical batch size') },
      [400, 'context_length_exceeded', 'messages', null],
      /maximum context length/,
    ],
    [
      '400 of LiteLLM',
      {
        status: 400,
        body: openAi('litellm.BadRequestError: OpenAIException - bad grammar. Received Model Group=weir-7'),
      },
      [400, 'invalid_value', null, null],
      /^bad grammar\.$/,
    ],
    ['413', { status: 413, body: openAi('too big') }, [413, 'request_too_large', null, null], /./],
    [
      '429',
      { status: 429, body: openAi('tenant weir-7 over quota') },
      [503, 'model_overloaded', 'model', '5'],
      /^((?!weir-7).)*$/,
    ],
    [
      '401',
      { status: 401, body: openAi('key sk-secret is bad') },
      [502, 'upstream_error', null, '2'],
      /^((?!secret).)*$/,
    ],
    [
      '403',
      { status: 403, body: openAi('key sk-secret is bad') },
      [502, 'upstream_error', null, '2'],
      /^((?!secret).)*$/,
    ],
    [
      '404',
      { status: 404, body: openAi('no model secret-name') },
      [502, 'upstream_error', null, '2'],
      /^((?!secret).)*$/,
    ],
    ['500', { status: 500, body: openAi('secret trace') }, [502, 'upstream_error', null, '2'], /^((?!secret).)*$/],
    ['503', { status: 503, body: openAi('secret trace') }, [502, 'upstream_error', null, '2'], /^((?!secret).)*$/],
    ['504', { status: 504, body: openAi('secret trace') }, [504, 'upstream_timeout', null, '5'], /^((?!secret).)*$/],
    ['302', { status: 302, body: openAi('secret place') }, [502, 'upstream_error', null, '2'], /^((?!secret).)*$/],
  ]

  it('[X1][X2] become our codes and messages, streaming or not, and nothing is billed', async (t) => {
    const { weir, engine } = await sharedStage(t)
    for (const [what, refuse, [status, code, param, retryAfter], message] of cases) {
      for (const stream of [false, true]) {
        engine.script = { refuse }
        const refusal = await refusalOf(await weir.chat({ stream }))
        assert.deepEqual(
          [refusal.status, refusal.code, refusal.param, refusal.retryAfter],
          [status, code, param, retryAfter],
          what,
        )
        assert.equal(refusal.type, status < 500 ? 'invalid_request_error' : 'server_error', what)
        assert.match(refusal.message, message, what)
      }
    }
    const rows = await weir.ledger()
    assert.equal(rows.length, cases.length * 2)
    assert.ok(rows.every(({ outcome, amount }) => outcome === 'engine_failed' && amount === 0n))
    await assertIdle(weir)
  })

  it('[X1] an unusable answer is an error', async (t) => {
    const { weir, engine } = await sharedStage(t)
    const bodies: readonly unknown[] = [
      'Hello',
      '',
      '[]',
      'null',
      {},
      { choices: [] },
      { choices: [{ index: 0, message: { content: 'cut off' }, finish_reason: null }] },
      { choices: [null] },
    ]
    for (const body of bodies) {
      const text = typeof body === 'string' ? body : JSON.stringify(body)
      engine.script = { handle: (_call, response) => void response.end(text) }
      const refusal = await refusalOf(await weir.chat({}))
      assert.deepEqual([refusal.status, refusal.code, refusal.retryAfter], [502, 'upstream_error', '2'], text)
    }
    const rows = await weir.ledger()
    assert.equal(rows.length, bodies.length)
    assert.ok(rows.every(({ outcome, amount }) => outcome === 'engine_failed' && amount === 0n))
    await assertIdle(weir)
  })
})

describe('engines of a catalog that changes', () => {
  it('[C9] requests that run or wait while the engine’s address changes are served', async (t) => {
    const held = gate()
    const limits = { max_concurrent_requests: 1 }
    const { weir, engine } = await sharedStage(t, { script: heldBy(held), limits })
    const other = await scriptedEngine()
    t.after(() => other.close())
    const first = weir.chat({})
    await engine.arrived(1)
    const second = weir.chat({})
    await eventually('the second waits', async () => (await laneOf(weir))['queue_depth'] === 1)
    weir.writeConfig(stageConfig([other.url], { limits }))
    assert.equal((await weir.reload()).status, 200)
    held.open()
    assert.equal((await first).status, 200)
    assert.equal((await second).status, 200)
    assert.equal((await weir.chat({})).status, 200)
    assert.ok(other.calls.length >= 1)
    assert.equal(engine.calls.length + other.calls.length, 3)
  })
})
