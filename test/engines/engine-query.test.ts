import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { queryEngine } from '../../src/engines/engine-query.ts'
import { AnswerStalled, openClient, type AnswerHandler, type Client } from '../../src/engines/http-client/index.ts'

/** A server that does this with every request. */
async function stage(t: TestContext, serve: (socket: Socket) => void) {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', () => serve(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  return { client: openClient({ origin: `http://127.0.0.1:${port}` }, 10_000) }
}

const answers = (socket: Socket): void => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello')

describe('a query to an engine besides its calls', () => {
  it('has a status and a text, which ends where it becomes too long', async (t) => {
    const { client } = await stage(t, answers)
    const limits = { path: '/', lines: '', timeoutMs: 10_000 }
    assert.deepEqual(await queryEngine(client, { ...limits, maxBytes: 5 }), {
      status: 200,
      isWhole: true,
      body: 'hello',
    })
    assert.deepEqual(await queryEngine(client, { ...limits, maxBytes: 4 }), { status: 200, isWhole: false, body: '' })
    await client.close()
  })

  it('is aborted when there is no answer in time, or when it is no longer needed', async (t) => {
    const { client } = await stage(t, () => {})
    await assert.rejects(queryEngine(client, { path: '/', lines: '', timeoutMs: 20, maxBytes: 5 }), AnswerStalled)
    const stopped = new AbortController()
    const answer = queryEngine(client, { path: '/', lines: '', timeoutMs: 10_000, maxBytes: 5, signal: stopped.signal })
    stopped.abort()
    await assert.rejects(answer, /not wanted any more/)
    await client.close()
  })

  /** A client whose connection a test plays. */
  function playedClient() {
    const aborts: Error[] = []
    let handler: AnswerHandler | undefined
    const client: Client = {
      send(_request, it) {
        handler = it
        return {
          abort(cause) {
            aborts.push(cause)
            it.failed(cause)
          },
          pause() {},
          resume() {},
        }
      },
      close: () => Promise.resolve(),
    }
    return { client, aborts, play: () => handler! }
  }

  const bytes = (count: number): Buffer => Buffer.alloc(count, 'x')

  it('counts the bytes of all pieces, and is aborted by the piece that exceeds the limit', async () => {
    const { client, aborts, play } = playedClient()
    const question = { path: '/', lines: '', timeoutMs: 1000, maxBytes: 10 }
    const whole = queryEngine(client, question)
    play().sending()
    play().head(404, {})
    for (const piece of [4, 3, 3]) play().data(bytes(piece))
    play().ended()
    assert.deepEqual(await whole, { status: 404, isWhole: true, body: 'xxxxxxxxxx' })
    assert.equal(aborts.length, 0)
    const long = queryEngine(client, question)
    play().sending()
    play().head(200, {})
    for (const piece of [4, 7]) play().data(bytes(piece))
    assert.deepEqual(await long, { status: 200, isWhole: false, body: 'xxxx' })
    assert.deepEqual(
      aborts.map(({ name, message }) => [name, message]),
      [['AbortError', 'the answer is too long']],
    )
  })

  it('has its time from when it was last sent, and none before that or after its end', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { client, aborts, play } = playedClient()
    const question = { path: '/', lines: '', timeoutMs: 1000, maxBytes: 10 }
    const late = queryEngine(client, question)
    t.mock.timers.tick(5000)
    play().sending()
    t.mock.timers.tick(900)
    play().resending()
    play().sending()
    t.mock.timers.tick(999)
    assert.equal(aborts.length, 0)
    t.mock.timers.tick(1)
    await assert.rejects(late, AnswerStalled)
    const answered = queryEngine(client, question)
    play().sending()
    play().head(200, {})
    play().ended()
    t.mock.timers.tick(5000)
    assert.deepEqual(await answered, { status: 200, isWhole: true, body: '' })
    const failed = queryEngine(client, question)
    play().sending()
    play().failed(new Error('reset'))
    t.mock.timers.tick(5000)
    await assert.rejects(failed, /reset/)
    assert.equal(aborts.length, 1)
  })

  it('leaves no listener on its signal', async () => {
    const { client, aborts, play } = playedClient()
    const stopped = new AbortController()
    const question = { path: '/', lines: '', timeoutMs: 1000, maxBytes: 10, signal: stopped.signal }
    const answered = queryEngine(client, question)
    play().head(200, {})
    play().ended()
    await answered
    const failed = queryEngine(client, question)
    play().failed(new Error('reset'))
    await assert.rejects(failed, /reset/)
    stopped.abort()
    assert.equal(aborts.length, 0)
  })
})
