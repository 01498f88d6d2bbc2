import assert from 'node:assert/strict'
import { channel, subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { request as undiciRequest } from 'undici'
import {
  openClient,
  RequestAborted,
  type AnswerHandler,
  type ClientRequest,
} from '../../../src/engines/http-client/index.ts'
import { isTraced } from '../../../src/engines/http-client/diagnostics.ts'
import { within } from '../../support/waiting.ts'

/** What the subscribers of undici's channels use of a request. */
interface SeenRequest {
  readonly origin: string
  readonly method: string
  readonly path: string
  readonly headers: string[]
  readonly completed: boolean
  readonly aborted: boolean
  addHeader(name: string, value: string): unknown
}

interface Message {
  readonly request: SeenRequest
  readonly socket?: Socket
  readonly headers?: string
  readonly response?: { readonly statusCode: number; readonly headers: readonly Buffer[] }
  readonly trailers?: readonly unknown[]
  readonly error?: Error
  readonly connectParams?: { readonly host: string; readonly protocol: string; readonly port: string }
}

const requestChannels = [
  'undici:request:create',
  'undici:client:sendHeaders',
  'undici:request:headers',
  'undici:request:trailers',
  'undici:request:error',
]
const connectChannels = ['undici:client:beforeConnect', 'undici:client:connected', 'undici:client:connectError']

/** Subscribes until the test ends. `seen` gets every message, with the name of its channel. */
function listen(t: TestContext, names: readonly string[], seen: (name: string, message: Message) => void): void {
  for (const channelName of names) {
    const take = (message: unknown): void => seen(channelName, message as Message)
    subscribe(channelName, take)
    t.after(() => unsubscribe(channelName, take))
  }
}

async function serve(t: TestContext, answer: (socket: Socket) => void) {
  const received: string[] = []
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      received.push(bytes.toString('latin1'))
      answer(socket)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const client = openClient({ origin }, 10_000)
  t.after(() => client.close())
  return { origin, client, received, server }
}

const ANSWER = 'HTTP/1.1 404 Not Found\r\nVia: a\r\nVia: b\r\nContent-Length: 2\r\n\r\nno'
const post: ClientRequest = {
  method: 'POST',
  path: '/v1/chat?a=b',
  lines: 'content-type: text/plain\r\n',
  body: Buffer.from('hello'),
}

/** Sends a request and resolves when it is over. */
function send(
  client: ReturnType<typeof openClient>,
  { sent }: { sent?: (abort: (cause: Error) => void) => void } = {},
): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  const handler: AnswerHandler = {
    sending: () => void setImmediate(() => sent?.((cause) => sending.abort(cause))),
    resending() {},
    head() {},
    data() {},
    ended: () => resolve('ended'),
    failed: ({ message }) => resolve(message),
  }
  const sending = client.send(post, handler)
  return within(10_000, 'the request ends', promise)
}

describe('the channels of undici', () => {
  it('are all known: a request is traced if one of them has a subscriber', () => {
    for (const name of requestChannels) {
      const take = (): void => {}
      assert.equal(isTraced(), false)
      subscribe(name, take)
      assert.equal(isTraced(), true, name)
      unsubscribe(name, take)
    }
  })
})

describe('tracing tools', () => {
  it('see a request through the channels of undici', async (t) => {
    const { client, origin } = await serve(t, (socket) => socket.write(ANSWER))
    const seen: [string, Message][] = []
    listen(t, [...connectChannels, ...requestChannels], (name, message) => seen.push([name, message]))
    assert.equal(await send(client), 'ended')
    assert.deepEqual(
      seen.map(([name]) => name),
      [
        'undici:request:create',
        'undici:client:beforeConnect',
        'undici:client:connected',
        'undici:client:sendHeaders',
        'undici:request:headers',
        'undici:request:trailers',
      ],
    )
    const messages = new Map(seen)
    const { host } = new URL(origin)
    const { request } = messages.get('undici:request:create')!
    assert.deepEqual([request.origin, request.method, request.path], [origin, 'POST', '/v1/chat?a=b'])
    const headers = ['host', host, 'connection', 'keep-alive', 'content-type', 'text/plain', 'content-length', '5']
    assert.deepEqual(request.headers, headers)
    assert.deepEqual([request.completed, request.aborted], [true, false])
    for (const name of requestChannels.slice(1, 4)) assert.equal(messages.get(name)?.request, request)
    const { headers: head, socket } = messages.get('undici:client:sendHeaders')!
    assert.ok(head?.startsWith('POST /v1/chat?a=b HTTP/1.1\r\nhost: '))
    assert.equal(socket?.remotePort, Number(new URL(origin).port))
    const { response } = messages.get('undici:request:headers')!
    assert.equal(response?.statusCode, 404)
    assert.deepEqual(response?.headers.map(String), ['via', 'a', 'via', 'b', 'content-length', '2'])
    assert.equal(messages.get('undici:client:connected')?.connectParams?.host, host)
  })

  it('see the same as for a request that undici sends', async (t) => {
    const { client, origin } = await serve(t, (socket) => socket.write(ANSWER))
    const shapes: Record<string, string>[] = []
    let shape: Record<string, string> = {}
    listen(t, [...connectChannels, ...requestChannels], (name, message) => {
      const parts = Object.entries({ ...message, ...message.connectParams, ...message.response })
      shape[name] = parts.map(([key, value]) => `${key}: ${Array.isArray(value) ? 'array' : typeof value}`).join()
      for (const field of ['origin', 'method', 'path', 'headers', 'addHeader', 'idempotent', 'completed', 'aborted']) {
        if (message.request) shape[`request.${field}`] = typeof message.request[field as 'method']
      }
    })
    const { body } = await undiciRequest(origin + post.path, { method: 'POST', body: 'hello' })
    await body.dump()
    shapes.push(shape)
    shape = {}
    await send(client)
    // undici also hands on its connector, and knows whether it uses HTTP/2 only once it is connected.
    const [theirs, ours] = [...shapes, shape].map((it) =>
      Object.fromEntries(
        Object.entries(it).map(([name, parts]) => [
          name,
          parts
            .split(',')
            .filter((part) => !/^(connector|version|servername|localAddress):/.test(part))
            .toSorted(),
        ]),
      ),
    )
    assert.deepEqual(ours, theirs)
  })

  it('add headers to a request before it is sent, but none that its framing needs', async (t) => {
    const { client, received } = await serve(t, (socket) => socket.write(ANSWER))
    const refused: string[] = []
    let late: SeenRequest | undefined
    listen(t, ['undici:request:create'], (_name, { request }) => {
      late = request
      request.addHeader('traceparent', '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01')
      for (const [name, value] of [
        ['Content-Length', '3'],
        ['host', 'other'],
        ['Transfer-Encoding', 'chunked'],
        ['connection', 'close'],
        ['a', 'b\r\nc: d'],
        ['a b', 'c'],
      ] as const) {
        assert.throws(() => request.addHeader(name, value), TypeError)
        refused.push(name)
      }
    })
    await send(client)
    assert.equal(refused.length, 6)
    assert.match(received.join(''), /^POST [^]*\r\ntraceparent: 00-0af[^\r]*-01\r\n\r\nhello$/)
    assert.throws(() => late?.addHeader('a', 'b'), TypeError)
  })

  it('see why a request failed, and do not count an aborted one', async (t) => {
    const { client } = await serve(t, () => {})
    const errors: Error[] = []
    listen(t, ['undici:request:error'], (_name, { error }) => errors.push(error!))
    await send(client, { sent: (abort) => abort(new RequestAborted('the caller has left')) })
    assert.deepEqual(
      errors.map(({ name, message }) => [name, message]),
      [['AbortError', 'the caller has left']],
    )
    const { client: ssh } = await serve(t, (socket) => socket.write('SSH-2.0-OpenSSH\r\n'))
    await send(ssh)
    assert.equal(errors[1]?.name, 'BrokenMessage')
  })

  it('see an unreachable server', async (t) => {
    const { client, server } = await serve(t, () => {})
    server.close()
    await once(server, 'close')
    const seen: [string, string | undefined][] = []
    listen(t, [...connectChannels, ...requestChannels], (name, { error }) => seen.push([name, error?.message]))
    const message = await send(client)
    assert.match(message, /ECONNREFUSED/)
    assert.deepEqual(seen, [
      ['undici:request:create', undefined],
      ['undici:client:beforeConnect', undefined],
      ['undici:client:connectError', message],
      ['undici:request:error', message],
    ])
  })

  it('cost nothing when there are none', async (t) => {
    for (const name of [...connectChannels, ...requestChannels]) {
      assert.equal(channel(name).hasSubscribers, false)
      t.mock.method(channel(name), 'publish', () => assert.fail(`${name} is published`))
    }
    const { client } = await serve(t, (socket) => socket.write(ANSWER))
    assert.equal(await send(client), 'ended')
  })
})
