import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, it, type TestContext } from 'node:test'
import { engineClient } from '../../src/operate/doctor/doctor-engine-client.ts'
import { scriptedServer, sendEvents } from '../support/scripted-server.ts'
import { eventually, within } from '../support/waiting.ts'

const PIECE = 'x'.repeat(100_000)
const MAX_BYTES = 4_000_000

/** Sends pieces for as long as the caller takes them. */
function sendForEver(response: ServerResponse, piece: string): void {
  const more = (): void => {
    while (!response.destroyed && response.write(piece));
    if (!response.destroyed) response.once('drain', more)
  }
  more()
}

/** The time limits that calls ask for; each is over at once. */
function timeLimits(t: TestContext): number[] {
  const limits: number[] = []
  t.mock.method(AbortSignal, 'timeout', (ms: number) => {
    limits.push(ms)
    return AbortSignal.abort(new DOMException('The time is up.', 'TimeoutError'))
  })
  return limits
}

describe('a call of the doctor to an engine', () => {
  it('carries the key, and goes below the base address, or to the root of the server', async (t) => {
    const server = await scriptedServer(t, () => ({ ok: true }))
    const client = engineClient(`${server.url}/v1`, 'secret')
    await client.get(`${server.url}/models`)
    const { status, json } = await client.post('/chat/completions', { model: 'm' })
    await client.stream('//rerank', { query: 'q' })
    assert.deepEqual([status, json], [200, { ok: true }])
    assert.deepEqual(
      server.asked.map(({ method, path, headers, body }) => [method, path, headers.authorization, body]),
      [
        ['GET', '/models', 'Bearer secret', undefined],
        ['POST', '/v1/chat/completions', 'Bearer secret', { model: 'm' }],
        ['POST', '/rerank', 'Bearer secret', { query: 'q', stream: true }],
      ],
    )
    await engineClient(server.url, undefined).post('/', {})
    assert.equal(server.asked.at(-1)?.headers.authorization, undefined)
  })

  it('has five seconds to find out what the server is, and a minute for a question', async (t) => {
    const server = await scriptedServer(t, () => ({}))
    const limits = timeLimits(t)
    const client = engineClient(server.url, undefined)
    assert.equal(await client.get(server.url), undefined)
    await assert.rejects(client.post('/', {}), { name: 'TimeoutError' })
    await assert.rejects(client.stream('/', {}), { name: 'TimeoutError' })
    assert.deepEqual(limits, [5000, 60_000, 60_000])
  })

  it('reads the events of a stream to its end, whatever they are', async (t) => {
    const server = await scriptedServer(t, (_asked, response) =>
      sendEvents(response, [{ a: 'é' }, 'no JSON', '[DONE]']),
    )
    assert.deepEqual(await engineClient(server.url, undefined).stream('/', {}), {
      status: 200,
      events: [{ a: 'é' }, undefined],
      isDone: true,
      text: '',
    })
  })

  it('leaves a stream as soon as it has seen enough', async (t) => {
    const server = await scriptedServer(t, (_asked, response) => {
      response.setHeader('content-type', 'text/event-stream').write('data: 1\n\ndata: 2\n\n')
    })
    const client = engineClient(server.url, undefined)
    const seen = client.stream('/', {}, (events) => events.length === 2)
    assert.deepEqual((await within(10_000, 'the stream is left', seen)).events, [1, 2])
    await eventually('the caller has left', () => server.left() === 1)
  })

  it('ends after 4 MB, for an answer as for a stream', async (t) => {
    const server = await scriptedServer(t, ({ path }, response) => {
      if (path === '/stream') response.setHeader('content-type', 'text/event-stream')
      sendForEver(response, path === '/stream' ? `data: "${PIECE}"\n\n` : PIECE)
    })
    const client = engineClient(server.url, undefined)
    const { text } = await within(10_000, 'the answer is cut', client.post('/answer', {}))
    assert.ok(text.length > MAX_BYTES && text.length < 2 * MAX_BYTES)
    const { events, isDone } = await within(10_000, 'the stream is cut', client.stream('/stream', {}))
    assert.ok(events.length * PIECE.length < 2 * MAX_BYTES)
    assert.equal(isDone, false)
    await eventually('the caller has left both', () => server.left() === 2)
  })
})
