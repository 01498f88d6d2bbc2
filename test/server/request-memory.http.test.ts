import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, it, type TestContext } from 'node:test'
import { memoryToParse } from '../../src/shared/json/json-body.ts'
import { chatStage, refusalOf, type ChatStage, type StageOptions } from '../support/chat-stage.ts'
import { heldBytes, nothingIsHeld } from '../support/held-bytes.ts'
import { laneOf } from '../support/lane.ts'
import { rawChat, rawClient, type RawClient } from '../support/raw-client.ts'
import { eventually, gate } from '../support/waiting.ts'
import type { TestWeir } from '../support/weir.ts'

const MIB = 1024 * 1024
/** Room for one body of the largest size in each half, and a little more. */
const MEMORY = 2 * memoryToParse(MIB) + 4 * MIB
const SHARE = MEMORY / 2

/** The service with little memory for requests. */
async function stage(
  t: TestContext,
  options: StageOptions = {},
  memory = MEMORY,
): Promise<ChatStage & { readonly otherKey: string }> {
  const made = await chatStage(t, {
    ...options,
    model: { context_length: 100_000_000, max_completion_tokens: 100_000_000 },
    limits: { token_budget: 1_000_000_000, max_queue_depth: 1000, max_wait_ms: 120_000, ...options.limits },
    config: {
      server: { port: 0, admin_port: 0, drain_ms: 500, max_body_bytes: MIB, max_request_memory_bytes: memory },
    },
  })
  await made.weir.admin('POST', '/admin/v1/workspaces', { name: 'other' })
  const response = await made.weir.admin('POST', '/admin/v1/keys', { workspace: 'other' })
  return { ...made, otherKey: ((await response.json()) as { key: string }).key }
}

/** A message that makes the body almost as large as it may be. */
const largeMessage = { messages: [{ role: 'user', content: 'x'.repeat(MIB - 1000) }] }
/** A caller that sends a large chat and waits. */
async function largeChat(weir: TestWeir, key = weir.key): Promise<RawClient> {
  const client = await rawClient(weir.base)
  client.send(rawChat(key, largeMessage))
  return client
}

describe('waiting requests', () => {
  it('hold no more memory than allowed: beyond it, large requests get 503 and others are served', async (t) => {
    const held = gate()
    t.after(held.open)
    const { weir, engine, otherKey } = await stage(t, {
      script: { hold: { afterTokens: 0, until: held.opened } },
      limits: { max_concurrent_requests: 1 },
    })
    const waiting: RawClient[] = []
    for (let refused = 0; refused < 3;) {
      const client = await largeChat(weir)
      await eventually('it is queued or refused', async () => {
        const { queue_depth: queued, in_flight_requests: running } = await laneOf(weir)
        return queued + running > waiting.length || client.received.includes('HTTP/1.1 503')
      })
      if (!client.received.includes('HTTP/1.1 503')) {
        waiting.push(client)
        continue
      }
      refused++
      assert.match(client.received, /"code":"service_unavailable"/)
      assert.match(client.received, /\r\nRetry-After: 2\r\n/i)
      assert.match(client.received, /This workspace has too much data in flight[^"]*Try again/)
      client.leave()
    }
    // A body counts for itself while it waits, and for more while it is read and parsed.
    const most = Math.floor(SHARE / (MIB - 1000))
    assert.ok(waiting.length > most / 2 && waiting.length <= most, `${waiting.length} of at most ${most} wait`)
    assert.ok((await heldBytes(weir)) <= SHARE)
    // Another workspace has its own half.
    const other = await largeChat(weir, otherKey)
    await eventually('it waits too', async () => (await laneOf(weir)).queue_depth === waiting.length)
    for (const client of [...waiting, other]) client.leave()
    await nothingIsHeld(weir)
    held.open()
    assert.equal((await weir.chat(largeMessage)).status, 200)
    assert.ok(engine.calls.length >= 1)
    await nothingIsHeld(weir)
  })

  it('of all workspaces together hold no more than allowed', async (t) => {
    const held = gate()
    t.after(held.open)
    const { weir, otherKey } = await stage(t, { script: { hold: { afterTokens: 0, until: held.opened } } })
    await weir.admin('POST', '/admin/v1/workspaces', { name: 'third' })
    const made = await weir.admin('POST', '/admin/v1/keys', { workspace: 'third' })
    const { key: thirdKey } = (await made.json()) as { key: string }
    const clients: RawClient[] = []
    const refusals: string[] = []
    for (const key of [weir.key, otherKey, thirdKey]) {
      let client: RawClient
      do {
        client = await largeChat(weir, key)
        clients.push(client)
        await eventually('it is queued or refused', async () => {
          const { queue_depth: queued, in_flight_requests: running } = await laneOf(weir)
          return queued + running === clients.length - refusals.length || client.received !== ''
        })
      } while (client.received === '')
      refusals.push(/"message":"([^"]*)"/.exec(client.received)?.[1] ?? '')
    }
    assert.match(refusals[0] ?? '', /^This workspace has too much data in flight/)
    assert.match(refusals[2] ?? '', /^The service has too much data in flight\. Try again/)
    assert.ok((await heldBytes(weir)) <= MEMORY)
    for (const client of clients) client.leave()
    await nothingIsHeld(weir)
  })
})

describe('a body that arrives', () => {
  it('counts for what has arrived, not for what it declares', async (t) => {
    const { weir } = await stage(t)
    const text = rawChat(weir.key, largeMessage)
    const clients = await Promise.all(Array.from({ length: 100 }, () => rawClient(weir.base)))
    for (const client of clients) client.send(text.slice(0, 2000))
    await eventually('all of them have begun', async () => (await heldBytes(weir)) > 100 * 1000)
    assert.ok((await heldBytes(weir)) < 100 * 16_000, `${await heldBytes(weir)} bytes`)
    assert.equal((await weir.chat({})).status, 200)
    for (const client of clients) client.leave()
    await nothingIsHeld(weir)
  })

  it('is refused as soon as there is no room for more of it', async (t) => {
    const { weir } = await stage(t)
    const text = rawChat(weir.key, largeMessage)
    const clients = await Promise.all(Array.from({ length: 40 }, () => rawClient(weir.base)))
    // None of them is complete, but together they have more than fits.
    for (const client of clients) client.send(text.slice(0, -1000))
    const refused = (): RawClient[] => clients.filter(({ received }) => received.includes('HTTP/1.1 503'))
    await eventually('some are refused', () => refused().length > 0)
    await eventually('the others hold no more than fits', async () => {
      const held = await heldBytes(weir)
      return held > 0 && held <= SHARE
    })
    for (const client of clients) client.leave()
    await nothingIsHeld(weir)
  })

  it('of the largest size is accepted to its last byte, and one byte more is not', async (t) => {
    const { weir, engine } = await stage(t)
    for (const chunked of [false, true]) {
      for (const [extra, status] of [
        [0, 200],
        [1, 413],
      ] as const) {
        const empty = JSON.stringify({ model: 'meta/test-8b', messages: [{ role: 'user', content: '' }] })
        const content = 'x'.repeat(MIB - empty.length + extra)
        const body = JSON.stringify({ model: 'meta/test-8b', messages: [{ role: 'user', content }] })
        assert.equal(body.length, MIB + extra)
        const response = await weir.call('/chat/completions', {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          ...(chunked ? { body: new Blob([body]).stream(), duplex: 'half' } : { body }),
        })
        assert.equal(response.status, status, `${extra} bytes too many, ${chunked ? 'chunked' : 'with a length'}`)
        await response.text()
        if (status !== 200) continue
        const sent = engine.calls.at(-1)?.body['messages'] as { content: string }[] | undefined
        assert.equal(sent?.[0]?.content, content)
      }
    }
    await nothingIsHeld(weir)
  })
})

describe('an answer', () => {
  const answer = (bytes: number): string =>
    JSON.stringify({ choices: [{ index: 0, message: { content: 'x'.repeat(bytes) }, finish_reason: 'stop' }] })

  it('for which there is no room gets 503 and costs nothing', async (t) => {
    const { weir, engine } = await stage(t, {
      script: { handle: (_call, response) => void response.end(answer(SHARE + MIB)) },
    })
    const refusal = await refusalOf(await weir.chat({}))
    assert.deepEqual([refusal.status, refusal.code], [503, 'service_unavailable'])
    await nothingIsHeld(weir)
    const [row] = await weir.ledger()
    assert.deepEqual([row?.outcome, row?.amount], ['engine_failed', 0n])
    engine.script = {}
    assert.equal((await weir.chat({})).status, 200)
  })

  it('that its caller does not read counts until it does', async (t) => {
    // Far more than the sockets of both sides hold.
    const large = 16_000_000
    const script = { handle: (_call: unknown, response: ServerResponse) => void response.end(answer(large)) }
    const { weir, otherKey } = await stage(t, { script }, 6 * large)
    const asked = { max_tokens: 20_000_000 }
    const readers: RawClient[] = []
    for (let index = 0; index < 2; index++) {
      const reader = await rawClient(weir.base)
      reader.socket.pause()
      reader.send(rawChat(weir.key, asked))
      readers.push(reader)
      await eventually('its answer is held', async () => (await heldBytes(weir)) >= readers.length * large)
    }
    assert.equal((await refusalOf(await weir.chat(asked))).code, 'service_unavailable')
    assert.ok((await (await weir.chat(asked, { key: otherKey })).text()).length > large)
    const [first] = readers
    first?.socket.resume()
    await eventually('it has its answer', () => (first?.received.length ?? 0) > large)
    assert.ok((await (await weir.chat(asked)).text()).length > large)
    for (const reader of readers) reader.leave()
    await nothingIsHeld(weir)
  })
})

describe('memory is freed', () => {
  const ways: Readonly<Record<string, (stage: ChatStage) => Promise<unknown>>> = {
    'after an answer': async ({ weir }) => (await weir.chat(largeMessage)).text(),
    'after a stream': async ({ weir }) => (await weir.chat({ ...largeMessage, stream: true })).text(),
    'after a refused body': async ({ weir }) => (await weir.chat({ ...largeMessage, temperature: 9 })).text(),
    'after a body that is not JSON': async ({ weir }) =>
      (
        await weir.call('/chat/completions', {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: `{"messages": [${'0,'.repeat(100_000)}`,
        })
      ).text(),
    'after a body that is too large': async ({ weir }) =>
      (await weir.chat({ messages: [{ role: 'user', content: 'x'.repeat(2 * MIB) }] })).text(),
    'after an engine that fails': async ({ weir, engine }) => {
      engine.script = { refuse: { status: 500, body: {} } }
      await (await weir.chat(largeMessage)).text()
    },
    'after an engine that breaks off': async ({ weir, engine }) => {
      engine.script = { breakAfter: { tokens: 1, how: 'reset' } }
      await (await weir.chat({ ...largeMessage, stream: true })).text()
      await (await weir.chat(largeMessage)).text()
    },
    'after a caller that left in its body': async ({ weir }) => {
      const client = await rawClient(weir.base)
      client.send(rawChat(weir.key, largeMessage).slice(0, 500_000))
      await eventually('some of it has arrived', async () => (await heldBytes(weir)) > 400_000)
      client.leave()
    },
    'after a caller that left the engine': async ({ weir, engine }) => {
      engine.script = { handle: (_call, response) => new Promise((resolve) => response.once('close', resolve)) }
      const seen = engine.calls.length
      const client = await largeChat(weir)
      await engine.arrived(seen + 1)
      client.leave()
    },
  }

  it('whatever happens to a request', async (t) => {
    const made = await stage(t)
    for (const [name, work] of Object.entries(ways)) {
      made.engine.script = {}
      await work(made)
      await eventually(`nothing is held ${name}`, async () => (await heldBytes(made.weir)) === 0)
    }
  })
})
