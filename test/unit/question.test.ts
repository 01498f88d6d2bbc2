import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { ask } from '../../src/engines/question.ts'
import { AnswerStalled, openClient } from '../../src/http-client/index.ts'

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

describe('a question besides the calls', () => {
  it('has a status and a text, which ends where it becomes too long', async (t) => {
    const { client } = await stage(t, answers)
    const limits = { path: '/', lines: '', timeoutMs: 10_000 }
    assert.deepEqual(await ask(client, { ...limits, maxBytes: 5 }), { status: 200, isWhole: true, body: 'hello' })
    assert.deepEqual(await ask(client, { ...limits, maxBytes: 4 }), { status: 200, isWhole: false, body: '' })
    await client.close()
  })

  it('is given up when there is no answer in time, or it is not wanted any more', async (t) => {
    const { client } = await stage(t, () => {})
    await assert.rejects(ask(client, { path: '/', lines: '', timeoutMs: 20, maxBytes: 5 }), AnswerStalled)
    const stopped = new AbortController()
    const answer = ask(client, { path: '/', lines: '', timeoutMs: 10_000, maxBytes: 5, signal: stopped.signal })
    stopped.abort()
    await assert.rejects(answer, /not wanted any more/)
    await client.close()
  })
})
