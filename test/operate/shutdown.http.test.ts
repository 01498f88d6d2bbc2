import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openIntents } from '../support/open-intents.ts'
import { stageConfig, type StageOptions } from '../support/chat-stage.ts'
import { inLongRun } from '../support/long-run.ts'
import { rawChat, rawClient, type RawClient } from '../support/raw-client.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { eventually, gate, within, type Gate } from '../support/waiting.ts'
import { weirProcess, type WeirProcess } from '../support/weir-process.ts'

interface Stage {
  readonly weir: WeirProcess
  readonly engine: ScriptedEngine
}

async function stage(t: TestContext, options: StageOptions & { drainMs?: number } = {}): Promise<Stage> {
  const engine = await scriptedEngine()
  engine.script = options.script ?? {}
  const server = { port: 0, admin_port: 0, drain_ms: options.drainMs ?? 20_000 }
  const weir = await weirProcess(stageConfig([engine.url], { ...options, config: { server } }))
  t.after(async () => {
    await weir.remove()
    await engine.close()
  })
  return { weir, engine }
}

/** Sends one word at once and the rest when the gate opens, as a stream or not, as requested. */
const heldBy = (held: Gate): ScriptedEngine['script'] => ({
  async handle({ body }, response) {
    const stream = body['stream'] === true
    const choice = (content: string, reason: string | null): string =>
      JSON.stringify({
        choices: [{ index: 0, delta: { content }, message: { content }, finish_reason: reason }],
        usage: { prompt_tokens: 4, completion_tokens: 2 },
      })
    if (stream) response.write(`data: ${choice('first', null)}\n\n`)
    await held.opened
    response.end(stream ? `data: ${choice('last', 'stop')}\n\ndata: [DONE]\n\n` : choice('whole', 'stop'))
  },
})

async function ask(weir: WeirProcess, body: object): Promise<RawClient> {
  const client = await rawClient(weir.base)
  client.send(rawChat(weir.key, body))
  return client
}

async function statusOf(url: string): Promise<number> {
  const response = await fetch(url)
  await response.text()
  return response.status
}

async function queueDepth(weir: WeirProcess): Promise<number> {
  const response = await fetch(`${weir.base}/queue/status`, { headers: { authorization: `Bearer ${weir.key}` } })
  return ((await response.json()) as { data: { queue_depth: number }[] }).data[0]?.queue_depth ?? -1
}

describe('SIGTERM', { concurrency: 2 }, () => {
  it('refuses waiting requests, lets running ones finish, and exits with code 0 and every row written', async (t) => {
    const held = gate()
    const { weir, engine } = await stage(t, { script: heldBy(held), limits: { max_concurrent_requests: 2 } })
    const idle = await rawClient(weir.base)
    idle.send('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
    await idle.sees('alive')
    assert.equal(await statusOf(`${weir.adminUrl}/readyz`), 200)

    const streaming = await ask(weir, { stream: true })
    await streaming.sees('first')
    const whole = await ask(weir, {})
    await engine.arrived(2)
    const waiting = [await ask(weir, {}), await ask(weir, { stream: true })]
    await eventually('two wait', async () => (await queueDepth(weir)) === 2)
    assert.ok(waiting.every(({ received }) => received === ''))

    weir.signal('SIGTERM')
    for (const client of waiting) {
      await client.closed()
      assert.match(client.received, /^HTTP\/1\.1 503 /)
      assert.match(client.received, /"code":"service_unavailable"/)
      assert.match(client.received, /\r\nRetry-After: 2\r\n/i)
      assert.match(client.received, /\r\nConnection: close\r\n/i)
      assert.match(client.received, /\r\nX-RateLimit-Remaining: \d+\r\n/i)
    }
    await idle.closed()
    assert.equal(await statusOf(`${weir.adminUrl}/readyz`), 503)
    assert.equal(await statusOf(`${weir.adminUrl}/healthz`), 200)
    await assert.rejects(weir.chat({}), 'a new connection was taken')
    assert.ok(!streaming.isClosed && !whole.isClosed)

    held.open()
    await streaming.closed()
    assert.match(streaming.received, /"last"[^]*data: \[DONE\]\n\n\r\n0\r\n\r\n$/)
    await whole.closed()
    assert.match(whole.received, /^HTTP\/1\.1 200 [^]*\r\nConnection: close\r\n[^]*"whole"/i)
    assert.equal(await within(20_000, 'it ends', weir.ended()), 0)
    assert.deepEqual(
      (await weir.ledger()).map(({ outcome, outputTokens }) => [outcome, outputTokens]),
      [
        ['completed', 2],
        ['completed', 2],
      ],
    )
    assert.equal(openIntents(weir.dataDir), 0)
    assert.equal(engine.calls.length, 2)
  })

  it('refuses a request on a connection that is still busy, too', inLongRun, async (t) => {
    const held = gate()
    const { weir, engine } = await stage(t, { script: heldBy(held) })
    const client = await ask(weir, { stream: true })
    await client.sees('first')
    weir.signal('SIGTERM')
    await eventually('it drains', async () => (await statusOf(`${weir.adminUrl}/readyz`)) === 503)
    client.send(rawChat(weir.key, {}))
    // It must arrive before the first is answered: otherwise the connection is closed, as it should be.
    await sleep(300)
    held.open()
    await client.closed()
    const [first = '', second = ''] = client.received.split(/(?=HTTP\/1\.1 503)/)
    assert.match(first, /data: \[DONE\]/)
    assert.match(second, /service_unavailable/)
    assert.match(second, /\r\nX-RateLimit-Limit: \d+\r\nX-RateLimit-Remaining: \d+\r\nX-RateLimit-Reset: \d+\r\n/i)
    assert.match(
      second,
      /\r\nRetry-After: 2\r\n[^]*\r\nConnection: close\r\n|\r\nConnection: close\r\n[^]*Retry-After: 2/i,
    )
    assert.equal(await within(20_000, 'it ends', weir.ended()), 0)
    assert.equal(engine.calls.length, 1)
  })

  it('lets a caller that is still reading its answer read it to the last byte', inLongRun, async (t) => {
    const content = 'x'.repeat(16 * 1024 * 1024)
    const { weir } = await stage(t, { script: { tokens: [content] } })
    const client = await rawClient(weir.base)
    client.socket.pause()
    client.send(rawChat(weir.key, {}))
    await eventually('the answer is on its way', async () => (await weir.ledger()).length === 1)
    weir.signal('SIGTERM')
    await eventually('it drains', async () => (await statusOf(`${weir.adminUrl}/readyz`)) === 503)
    await sleep(300)
    let read = 0
    client.socket.removeAllListeners('data')
    client.socket.on('data', (chunk) => (read += chunk.length))
    client.socket.resume()
    await client.closed()
    assert.ok(read > content.length, `only ${read} bytes of ${content.length}`)
    assert.equal(await within(20_000, 'it ends', weir.ended()), 0)
  })

  it('cuts off and settles requests that take longer than the drain limit', async (t) => {
    const { weir, engine } = await stage(t, { script: heldBy(gate()), drainMs: 300 })
    const streaming = await ask(weir, { stream: true })
    await streaming.sees('first')
    const whole = await ask(weir, {})
    await engine.arrived(2)
    const askedAt = performance.now()
    weir.signal('SIGTERM')
    assert.equal(await within(15_000, 'it ends', weir.ended()), 0)
    assert.ok(performance.now() - askedAt > 250, 'it did not wait')
    await Promise.all([streaming.closed(), whole.closed(), engine.left(2)])
    assert.doesNotMatch(streaming.received, /\[DONE\]/)
    assert.equal(whole.received, '')
    assert.deepEqual(
      (await weir.ledger()).map(({ outcome, amount }) => [outcome, amount]),
      [
        ['interrupted', 0n],
        ['interrupted', 0n],
      ],
    )
    assert.equal(openIntents(weir.dataDir), 0)
  })

  it(
    'under load, writes a row for every answer that was received, and refuses all other requests with 503',
    inLongRun,
    async (t) => {
      const { weir, engine } = await stage(t, {
        script: { tokenMs: 20 },
        limits: { max_concurrent_requests: 8, max_queue_depth: 100 },
      })
      const received: string[] = []
      const refused: (string | null)[] = []
      const broken: unknown[] = []
      const ask = async (caller: number): Promise<void> => {
        for (;;) {
          const stream = caller % 2 === 0
          const response = await weir.chat({ stream })
          const text = await response.text()
          if (response.status === 503) refused.push(response.headers.get('retry-after'))
          else if (!stream || text.endsWith('data: [DONE]\n\n'))
            received.push(response.headers.get('x-request-id') ?? '')
          else broken.push(text)
        }
      }
      // Each ends when connections are no longer accepted.
      const callers = Array.from({ length: 24 }, (_, caller) => ask(caller).catch(() => {}))
      await eventually('answers arrive', () => received.length > 40)
      weir.signal('SIGTERM')
      assert.equal(await within(20_000, 'it ends', weir.ended()), 0)
      await Promise.all(callers)
      assert.deepEqual(broken, [])
      assert.ok(refused.length > 0)
      assert.deepEqual([...new Set(refused)], ['2'])
      const rows = await weir.ledger()
      const completed = new Set(rows.filter(({ outcome }) => outcome === 'completed').map(({ requestId }) => requestId))
      for (const id of received) assert.ok(completed.has(id), `${id} was received and has no row`)
      assert.equal(rows.length, engine.calls.length)
      assert.equal(openIntents(weir.dataDir), 0)
    },
  )

  it('treats Ctrl-C under npm, which arrives twice, as one signal: running requests finish', inLongRun, async (t) => {
    const finish = gate()
    const { weir } = await stage(t, { script: heldBy(finish) })
    const client = await ask(weir, { stream: true })
    await client.sees('first')
    weir.signal('SIGINT')
    weir.signal('SIGINT')
    await eventually('it drains', async () => (await statusOf(`${weir.adminUrl}/readyz`)) === 503)
    finish.open()
    await client.sees('[DONE]')
    assert.equal(await within(20_000, 'it ends', weir.ended()), 0)
  })

  it('does the same on SIGINT, and exits at once with code 1 on a second signal', async (t) => {
    const { weir, engine } = await stage(t, { script: heldBy(gate()) })
    const client = await ask(weir, { stream: true })
    await client.sees('first')
    weir.signal('SIGINT')
    await eventually('it drains', async () => (await statusOf(`${weir.adminUrl}/readyz`)) === 503)
    weir.signal('SIGTERM')
    assert.equal(await within(10_000, 'it ends', weir.ended()), 1)
    await weir.start()
    assert.deepEqual(
      (await weir.ledger()).map(({ outcome }) => outcome),
      ['interrupted'],
    )
    weir.signal('SIGINT')
    assert.equal(await within(10_000, 'it ends', weir.ended()), 0)
    assert.equal(engine.calls.length, 1)
  })
})
