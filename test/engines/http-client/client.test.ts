import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, Socket, type AddressInfo, type Server, type ServerOpts } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { createServer as createSecureServer, getCACertificates, setDefaultCACertificates } from 'node:tls'
import {
  AnswerStalled,
  BrokenMessage,
  openClient,
  type AnswerHandler,
  type Client,
  type ClientRequest,
  type Sending,
  type ServerPlace,
} from '../../../src/engines/http-client/index.ts'
import { eventually, gate, within } from '../../support/waiting.ts'

const HELLO = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello'
const get: ClientRequest = { method: 'GET', path: '/', lines: '' }
const post = (body: ClientRequest['body']): ClientRequest => ({ method: 'POST', path: '/', lines: '', body })
const deaf: AnswerHandler = { sending() {}, resending() {}, head() {}, data() {}, ended() {}, failed() {} }

const closeOf = (socket: Socket | undefined): Promise<void> =>
  new Promise((resolve) => socket?.once('close', () => resolve()))

/** A server that is written by hand, byte by byte. `serve` gets each connection and what came on it so far. */
async function stage(
  t: TestContext,
  serve: (socket: Socket, received: string) => void,
  idleTimeoutMs = 10_000,
  options: ServerOpts = {},
) {
  const sockets: Socket[] = []
  const server = createServer(options, (socket) => {
    let received = ''
    sockets.push(socket)
    socket.on('error', () => {})
    socket.on('data', (bytes) => serve(socket, (received += bytes.toString('latin1'))))
  })
  const place = await listen(t, server, { port: 0, host: '127.0.0.1' })
  t.after(() => sockets.forEach((socket) => socket.destroy()))
  return { client: openClient(place, idleTimeoutMs), sockets, server }
}

async function listen(
  t: TestContext,
  server: Server,
  at: object,
  { host = '127.0.0.1', isSecure = false } = {},
): Promise<ServerPlace> {
  server.listen(at)
  await once(server, 'listening')
  t.after(() => server.close())
  const { port } = (server.address() as AddressInfo | null) ?? { port: 0 }
  return { origin: `${isSecure ? 'https' : 'http'}://${host}:${port}` }
}

interface Outcome {
  readonly status: number
  readonly body: string
  readonly error: Error | undefined
}

/** Sends a request and waits for its end. */
function send(client: Client, request = get, begun?: (sending: Sending) => void): Promise<Outcome> {
  const { promise, resolve } = Promise.withResolvers<Outcome>()
  let status = 0
  let body = ''
  const end = (error?: Error): void => resolve({ status, body, error })
  const sending = client.send(request, {
    ...deaf,
    head: (code) => (status = code),
    data: (bytes) => (body += bytes.toString('latin1')),
    ended: () => end(),
    failed: end,
  })
  begun?.(sending)
  return within(10_000, 'the request ends', promise)
}

const bodyOf = (received: string): string => received.slice(received.indexOf('\r\n\r\n') + 4)

/** Sends a text as one piece or byte by byte, and leaves the connection open. */
async function deliver(socket: Socket, text: string, isCut: boolean): Promise<void> {
  if (!isCut) return void socket.write(text, 'latin1')
  for (const byte of text) {
    if (!socket.writable) return
    socket.write(byte, 'latin1')
    await new Promise((resolve) => setImmediate(resolve))
  }
}

const answers = (socket: Socket, received: string): void => {
  if (received.endsWith('\r\n\r\n')) socket.write(HELLO)
}

describe('the connections of a client', () => {
  it('are reused, one request at a time', async (t) => {
    const { client, sockets } = await stage(t, answers)
    for (let times = 0; times < 3; times++) assert.equal((await send(client)).body, 'hello')
    assert.equal(sockets.length, 1)
    await Promise.all([send(client), send(client), send(client)])
    assert.equal(sockets.length, 3)
    await client.close()
  })

  it('carry one request each, however many there are', async (t) => {
    const { opened, open } = gate()
    const { client, sockets } = await stage(t, (socket) => void opened.then(() => socket.write(HELLO)))
    const all = Array.from({ length: 20 }, () => send(client))
    await eventually('all are connected', () => sockets.length === 20)
    open()
    for (const { body } of await Promise.all(all)) assert.equal(body, 'hello')
    await client.close()
  })

  it('are not reused once the server has closed them', async (t) => {
    const { client, sockets } = await stage(t, answers)
    await send(client)
    const [first] = sockets
    first?.end()
    await within(10_000, 'this side closes too', closeOf(first))
    assert.equal((await send(client)).body, 'hello')
    assert.equal(sockets.length, 2)
    await client.close()
  })

  it('are not reused from the moment in which the server closes them', async (t) => {
    const { client, sockets } = await stage(t, answers)
    const own = Promise.withResolvers<Socket>()
    const first = Promise.withResolvers<void>()
    // The socket is for what traces requests.
    const sending = (...[socket]: Socket[]): void => own.resolve(socket!)
    client.send(get, { ...deaf, sending, ended: first.resolve, failed: first.reject })
    await within(10_000, 'the first request ends', first.promise)
    const events: string[] = []
    const second = Promise.withResolvers<void>()
    const socket = await own.promise
    socket.once('end', () => {
      const resending = (): void => void events.push('resending')
      client.send(get, { ...deaf, resending, ended: second.resolve, failed: second.reject })
    })
    sockets[0]?.end()
    await within(10_000, 'the second request ends', second.promise)
    assert.deepEqual(events, [], 'it goes to a new connection')
    await client.close()
  })

  it('are not reused after a request whose receiver gave up at the head of a whole answer', async (t) => {
    const { client, sockets } = await stage(t, answers)
    for (let requests = 1; requests <= 2; requests++) {
      const error = await new Promise<Error>((resolve) => {
        const sending = client.send(get, {
          ...deaf,
          head: () => sending.abort(new Error('enough')),
          ended: () => resolve(new Error('it ended')),
          failed: resolve,
        })
      })
      assert.equal(error.message, 'enough')
      assert.equal((await send(client)).body, 'hello')
    }
    assert.equal(sockets.length, 3)
    await client.close()
  })

  it('are not reused after bytes that belong to no answer', async (t) => {
    const { client, sockets } = await stage(t, answers)
    await send(client)
    sockets[0]?.write('HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nsmuggle')
    await within(10_000, 'this side closes', closeOf(sockets[0]))
    assert.equal((await send(client)).body, 'hello')
    assert.equal(sockets.length, 2)
    await client.close()
  })

  it('are removed individually when the server closes one of several that are idle', async (t) => {
    for (const closed of [0, 1, 2]) {
      const { client, sockets } = await stage(t, answers)
      await Promise.all([send(client), send(client), send(client)])
      const first = sockets[closed]
      first?.end()
      await within(10_000, 'this side closes too', closeOf(first))
      await Promise.all([send(client), send(client)])
      assert.equal(sockets.length, 3, 'the other two are used again')
      await Promise.all([send(client), send(client), send(client)])
      assert.equal(sockets.length, 4)
      await client.close()
    }
  })

  it('are closed when they have been idle for a while', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { client, sockets } = await stage(t, answers)
    const before = performance.now()
    const sent = new Promise<void>((resolve, reject) => {
      client.send(get, { ...deaf, ended: resolve, failed: reject })
    })
    await sent
    const closed = closeOf(sockets[0])
    t.mock.method(performance, 'now', () => before + 60_000)
    t.mock.timers.tick(4000)
    await closed
    await client.close()
  })

  it('are not closed for the time for which they were idle before their next request', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { client, sockets } = await stage(t, (socket, received) => {
      if (received.split('GET').length === 2) socket.write(HELLO)
    })
    const before = performance.now()
    const request = (): Promise<void> =>
      new Promise((resolve, reject) => client.send(get, { ...deaf, ended: resolve, failed: reject }))
    await request()
    const next = request()
    t.mock.method(performance, 'now', () => before + 60_000)
    t.mock.timers.tick(4000)
    sockets[0]?.write(HELLO)
    await next
    assert.equal(sockets.length, 1)
    t.mock.timers.reset()
    await client.close()
  })

  it('accept an answer that arrives before the request was read, and are not reused', async (t) => {
    const { client, sockets } = await stage(t, (socket) => {
      socket.pause()
      socket.write('HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\nmuch')
    })
    const body = Buffer.alloc(32 * 1024 * 1024)
    const { status, body: said } = await send(client, post(body))
    assert.deepEqual([status, said], [413, 'much'])
    sockets[0]?.resume()
    await within(10_000, 'the connection is closed', closeOf(sockets[0]))
    await client.close()
  })

  it('are not reused if the answer arrives between two pieces of the request', async (t) => {
    const { client, sockets } = await stage(t, (socket) => socket.write(HELLO))
    const [waiting, over] = [gate(), gate()]
    const body = {
      length: 2,
      async *open() {
        yield Buffer.from('x')
        waiting.open()
        await over.opened
        yield Buffer.from('y')
      },
    }
    const answer = send(client, post(body))
    await waiting.opened
    assert.equal((await answer).body, 'hello')
    over.open()
    await send(client)
    assert.equal(sockets.length, 2)
    await client.close()
  })

  it('are reused after an answer that was paused at its end', async (t) => {
    const { client, sockets } = await stage(t, answers)
    const over = Promise.withResolvers<void>()
    const sending = client.send(get, {
      ...deaf,
      data: () => sending.pause(),
      ended: over.resolve,
      failed: over.reject,
    })
    await within(10_000, 'the first one ends', over.promise)
    assert.equal((await send(client)).body, 'hello')
    assert.equal(sockets.length, 1)
    await client.close()
  })

  it('send large bodies as they are, and small ones together with their heads', async (t) => {
    for (const size of [0, 1, 16_000, 16_384, 1_000_000]) {
      const lines = `host: HOST\r\nconnection: keep-alive\r\ncontent-length: ${size}\r\n`
      let seen = ''
      const { client } = await stage(t, (socket, received) => {
        seen = received.replace(/host: .*/, 'host: HOST')
        if (bodyOf(received).length === size) socket.write(HELLO)
      })
      await send(client, post(Buffer.alloc(size, 'x')))
      assert.ok(seen === `POST / HTTP/1.1\r\n${lines}\r\n${'x'.repeat(size)}`, `${size} bytes arrive`)
      await client.close()
    }
  })

  it('request the next piece of a body only when the one before has been sent', async (t) => {
    const total = 200 * 65_536
    const { client } = await stage(t, (socket, received) => {
      if (received.length > total && bodyOf(received).length === total)
        socket.write(HELLO.replace('hello', received.at(-1)!.repeat(5)))
    })
    const piece = Buffer.alloc(65_536)
    const body = {
      length: total,
      async *open() {
        // Each piece is written over the one before.
        for (let number = 0; number < 200; number++) yield piece.fill(65 + (number % 26))
      },
    }
    const { body: said } = await send(client, post(body))
    assert.equal(said, 'RRRRR')
    await client.close()
  })

  it('release the body of an aborted request', async (t) => {
    const { client, sockets } = await stage(t, () => {})
    const { opened, open } = gate()
    const body = {
      length: 1e9,
      async *open() {
        try {
          for (;;) yield Buffer.alloc(65_536)
        } finally {
          open()
        }
      },
    }
    const { error } = await send(client, post(body), (sending) => {
      void eventually('it is being sent', () => sockets.length === 1).then(() => sending.abort(new Error('given up')))
    })
    assert.equal(error?.message, 'given up')
    await within(10_000, 'the body is closed', opened)
    await client.close()
  })

  it('end a request whose body cannot be read', async (t) => {
    const { client } = await stage(t, () => {})
    const body = {
      length: 10,
      // oxlint-disable-next-line require-yield -- the file is gone
      async *open(): AsyncGenerator<Buffer> {
        throw new Error('no such file')
      },
    }
    const { error } = await send(client, post(body))
    assert.equal(error?.message, 'no such file')
    await client.close()
  })

  it('fail with what the receiver throws', async (t) => {
    const { client, sockets } = await stage(t, answers)
    const failed = new Promise<Error>((resolve) => {
      const data = (): never => {
        throw new Error('no room')
      }
      client.send(get, { ...deaf, data, failed: resolve })
    })
    assert.equal((await failed).message, 'no room')
    await within(10_000, 'the connection is closed', closeOf(sockets[0]))
    await client.close()
  })

  it('end a request at once when it is aborted, connected or not', async (t) => {
    const { client, sockets } = await stage(t, () => {})
    let isOver = false
    const early = send(client, get, (sending) => {
      sending.abort(new Error('never mind'))
      isOver = true
    })
    assert.ok(isOver)
    assert.equal((await early).error?.message, 'never mind')
    const late = send(client, get, (sending) => {
      const isAsked = (): boolean => sockets.some(({ bytesRead }) => bytesRead > 0)
      void eventually('the server has the request', isAsked).then(() => sending.abort(new Error('too late')))
    })
    assert.equal((await late).error?.message, 'too late')
    await client.close()
  })

  it('are reset when a request is aborted, and its end is reported when the server is notified', async (t) => {
    const codes: unknown[] = []
    const { promise: asked, resolve: isAsked } = Promise.withResolvers<void>()
    const { client, sockets } = await stage(t, (socket) => {
      socket.on('error', (error) => codes.push((error as NodeJS.ErrnoException).code))
      isAsked()
    })
    const ended = send(client, get, (sending) => void asked.then(() => sending.abort(new Error('never mind'))))
    assert.equal((await ended).error?.message, 'never mind')
    assert.ok(sockets[0]?.closed)
    assert.deepEqual(codes, ['ECONNRESET'])
    await client.close()
  })

  it('fail when nothing listens, and when the server disconnects', async (t) => {
    const { client, server } = await stage(t, (socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello')
      socket.end()
    })
    const broken = await send(client)
    assert.deepEqual([broken.body, broken.error?.message], ['hello', 'the server closed the connection'])
    server.close()
    await once(server, 'close')
    assert.match((await send(client)).error?.message ?? '', /ECONNREFUSED/)
    await client.close()
  })

  it('fail when the server becomes silent in its answer, but not before it', async (t) => {
    const { opened, open } = gate()
    const { client } = await stage(
      t,
      (socket) => void opened.then(() => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello')),
      50,
    )
    const outcome = send(client)
    await new Promise((resolve) => setTimeout(resolve, 200))
    open()
    const { body, error } = await outcome
    assert.equal(body, 'hello')
    assert.ok(error instanceof AnswerStalled)
    await client.close()
  })

  it('read nothing while they are paused, and do not count that as silence', async (t) => {
    const total = 32 * 1024 * 1024
    const { client, sockets } = await stage(
      t,
      (socket) => {
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${total}\r\n\r\n`)
        socket.end(Buffer.alloc(total))
      },
      300,
    )
    let bytes = 0
    let sending: Sending | undefined
    const over = Promise.withResolvers<Error | undefined>()
    sending = client.send(get, {
      ...deaf,
      data(chunk) {
        if (bytes === 0) sending?.pause()
        bytes += chunk.length
      },
      ended: () => over.resolve(undefined),
      failed: over.resolve,
    })
    await eventually('it has begun', () => bytes > 0)
    await new Promise((resolve) => setTimeout(resolve, 600))
    assert.ok(bytes <= 65_536, `${bytes} bytes were read`)
    assert.ok((sockets[0]?.writableLength ?? 0) > 0)
    sending.resume()
    assert.equal(await within(10_000, 'it ends', over.promise), undefined)
    assert.equal(bytes, total)
    await client.close()
  })

  it('fail when the server stays silent after a pause that was longer than its time', async (t) => {
    const { client } = await stage(
      t,
      (socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello'),
      50,
    )
    const over = Promise.withResolvers<Error | undefined>()
    const paused = gate()
    const sending = client.send(get, {
      ...deaf,
      data() {
        sending.pause()
        paused.open()
      },
      ended: () => over.resolve(undefined),
      failed: over.resolve,
    })
    await paused.opened
    await new Promise((resolve) => setTimeout(resolve, 200))
    sending.resume()
    assert.ok((await within(10_000, 'it fails', over.promise)) instanceof AnswerStalled)
    await client.close()
  })

  const neverAnswers: [string, string][] = [
    ['SSH', 'SSH-2.0-OpenSSH_9.2p1\r\n'],
    ['SMTP', '220 mail.example.com ESMTP\r\n'],
    ['the frames of HTTP/2', '\0\0\x12\x04\0\0\0\0\0'],
    ['a page without a head', '<html>'],
    ['one byte that no answer begins with', 'x'],
    ['HTTP/2 in words', 'HTTP/2'],
    ['HTTP/1.2', 'HTTP/1.2'],
    ['a status that there is not', 'HTTP/1.1 7'],
    ['a status that is no number', 'HTTP/1.1 OK'],
    ['a status of four digits', 'HTTP/1.1 2000'],
    ['an empty line', '\r\n'],
    ['garbage without a line', 'x'.repeat(1000)],
    ['a status line without an end', `HTTP/1.1 200 ${'x'.repeat(5000)}`],
    ['a line that ends with a line feed alone', 'HTTP/1.1 200 OK\n'],
    ['a zero in the head', 'HTTP/1.1 200 OK\r\nA: \0'],
    ['a carriage return in a value', 'HTTP/1.1 200 OK\r\nA: b\rc'],
  ]
  for (const [what, text] of neverAnswers) {
    it(`fail at once when the server sends ${what}, and keeps the connection open`, async (t) => {
      for (const isCut of [false, true]) {
        const { client } = await stage(t, (socket) => void deliver(socket, text, isCut))
        const { error } = await send(client)
        assert.ok(error instanceof BrokenMessage, String(error))
        await client.close()
      }
    })
  }

  it('wait for the rest of what can still become an answer', async (t) => {
    const text = `HTTP/1.0 404 ${'x'.repeat(4000)}\r\nA: b\r\nContent-Length: 0\r\n\r\n`
    for (const cut of [1, 7, 8, 9, 12, 13, 100, text.indexOf('\r') + 1, text.length - 3, text.length - 1]) {
      const { client, sockets } = await stage(t, (socket) => void socket.write(text.slice(0, cut)))
      let hasEnded = false
      const outcome = send(client).finally(() => (hasEnded = true))
      await eventually('it has the first part', () => (sockets[0]?.bytesWritten ?? 0) === cut)
      for (let turns = 0; turns < 5; turns++) await new Promise((resolve) => setImmediate(resolve))
      assert.ok(!hasEnded)
      sockets[0]?.write(text.slice(cut))
      assert.equal((await outcome).status, 404)
      await client.close()
    }
  })

  /** A server that ends the second request of its first connection like this, and answers all others. */
  const dying = (end: (socket: Socket) => void) => {
    const requests: string[] = []
    let first: Socket | undefined
    return {
      requests,
      serve(socket: Socket, received: string): void {
        first ??= socket
        requests.push(received)
        if (socket === first && requests.length === 2) end(socket)
        else socket.write(HELLO)
      },
    }
  }
  const ends: [string, (socket: Socket) => void][] = [
    ['closes', (socket) => socket.end()],
    ['resets', (socket) => socket.resetAndDestroy()],
  ]
  for (const [how, end] of ends) {
    it(`resend a request when the server ${how} a used connection before a byte of the answer`, async (t) => {
      const bodies: [string, ClientRequest['body']][] = [
        ['', undefined],
        ['body', Buffer.from('body')],
        [
          'two pieces',
          {
            length: 10,
            open: async function* () {
              yield* [Buffer.from('two '), Buffer.from('pieces')]
            },
          },
        ],
      ]
      for (const [text, body] of bodies) {
        const { requests, serve } = dying(end)
        const { client, sockets } = await stage(t, (socket, received) => {
          const last = received.slice(Math.max(received.lastIndexOf('GET'), received.lastIndexOf('POST')))
          if (last.startsWith('GET') || bodyOf(last) === text) serve(socket, received)
        })
        await send(client)
        const events: string[] = []
        const outcome = Promise.withResolvers<string>()
        client.send(body ? post(body) : get, {
          ...deaf,
          sending: () => events.push('sending'),
          resending: () => events.push('resending'),
          data: (bytes) => events.push(bytes.toString()),
          ended: () => outcome.resolve('ended'),
          failed: ({ message }) => outcome.resolve(message),
        })
        assert.equal(await within(10_000, 'the request ends', outcome.promise), 'ended')
        assert.deepEqual(events, ['sending', 'resending', 'sending', 'hello'])
        assert.equal(sockets.length, 2)
        assert.equal(requests[2], requests[1]?.slice(requests[0]?.length))
        // The new connection is as good as any other.
        assert.equal((await send(client)).body, 'hello')
        assert.equal(sockets.length, 2)
        await client.close()
      }
    })
  }

  it('resend a request only once, and never on a new connection', async (t) => {
    let answered = 0
    const { client, sockets } = await stage(t, (socket) => {
      if (answered++ === 0) socket.write(HELLO)
      else socket.resetAndDestroy()
    })
    await send(client)
    assert.ok((await send(client)).error)
    assert.deepEqual([sockets.length, answered], [2, 3])
    assert.ok((await send(client)).error)
    assert.deepEqual([sockets.length, answered], [3, 4])
    await client.close()
  })

  it('do not resend a request after a byte of the answer', async (t) => {
    for (const begun of ['H', 'HTTP/1.1 100 Continue\r\n\r\n', HELLO.slice(0, -1)]) {
      const { requests, serve } = dying((socket) => socket.end(begun))
      const { client } = await stage(t, serve)
      await send(client)
      assert.match((await send(client)).error?.message ?? '', /closed the connection/)
      assert.equal(requests.length, 2)
      await client.close()
    }
  })

  it('do not resend a request that was aborted, whose answer is late or whose body cannot be read', async (t) => {
    let answered = 0
    const { client, sockets } = await stage(t, (socket) => {
      if (answered++ === 0) socket.write(HELLO)
    })
    await send(client)
    const givenUp = send(client, get, (sending) => {
      void eventually('it is sent', () => answered === 2).then(() => sending.abort(new Error('given up')))
    })
    assert.equal((await givenUp).error?.message, 'given up')
    assert.equal(sockets.length, 1)
    answered = 0
    await send(client)
    // oxlint-disable-next-line require-yield -- the file is gone
    const open = async function* (): AsyncGenerator<Buffer> {
      throw new Error('no such file')
    }
    assert.equal((await send(client, post({ length: 1, open }))).error?.message, 'no such file')
    assert.equal(sockets.length, 2)
    await client.close()
  })

  it('carry no more of a request that is resent on another connection', async (t) => {
    const body = Buffer.alloc(32 * 1024 * 1024)
    let reads = 0
    const { client, sockets } = await stage(
      t,
      (socket) => {
        if (++reads !== 2) return void (socket.bytesWritten === 0 && socket.write(HELLO))
        // It will answer nothing more, and reads nothing more.
        socket.pause()
        socket.end()
      },
      10_000,
      { allowHalfOpen: true },
    )
    await send(client)
    assert.equal((await send(client, post(body))).body, 'hello')
    const [first] = sockets
    const closed = closeOf(first)
    first?.resume()
    await within(10_000, 'the first connection is closed', closed)
    assert.ok(first && first.bytesRead < body.length, `${first?.bytesRead} bytes were sent on it`)
    await client.close()
  })

  it('can be aborted and paused while a request is resent', async (t) => {
    for (const isGivenUp of [true, false]) {
      const { serve } = dying((socket) => socket.end())
      const { client, sockets } = await stage(t, serve)
      await send(client)
      const events: string[] = []
      const outcome = Promise.withResolvers<string>()
      const sending: Sending = client.send(get, {
        ...deaf,
        resending: () => (isGivenUp ? sending.abort(new Error('given up')) : sending.pause()),
        head: () => events.push('head'),
        ended: () => outcome.resolve('ended'),
        failed: ({ message }) => outcome.resolve(message),
      })
      if (isGivenUp) assert.equal(await within(10_000, 'it ends', outcome.promise), 'given up')
      else {
        await eventually('the answer is there', () => (sockets[1]?.bytesWritten ?? 0) > 0)
        for (let turns = 0; turns < 5; turns++) await new Promise((resolve) => setImmediate(resolve))
        assert.deepEqual(events, [])
        sending.resume()
        assert.equal(await within(10_000, 'it ends', outcome.promise), 'ended')
      }
      await within(10_000, 'the client closes', client.close())
    }
  })

  it('stay paused when a request is resent', async (t) => {
    let used: Socket | undefined
    const { client, sockets } = await stage(t, (socket) => {
      if (socket === used) return void socket.resetAndDestroy()
      if (sockets.length > 1 && socket.bytesWritten > 0) return
      used ??= socket
      socket.write(HELLO)
    })
    await send(client)
    const events: string[] = []
    const outcome = Promise.withResolvers<string>()
    const sending = client.send(post(Buffer.alloc(16 * 1024 * 1024)), {
      ...deaf,
      head: () => events.push('head'),
      ended: () => outcome.resolve('ended'),
      failed: ({ message }) => outcome.resolve(message),
    })
    sending.pause()
    await eventually('the answer is there', () => (sockets[1]?.bytesWritten ?? 0) > 0)
    for (let turns = 0; turns < 5; turns++) await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual(events, [])
    sending.resume()
    assert.equal(await within(10_000, 'it ends', outcome.promise), 'ended')
    await client.close()
  })

  it('close when the requests that run have ended', async (t) => {
    const { opened, open } = gate()
    const { client, sockets } = await stage(t, (socket) => void opened.then(() => socket.write(HELLO)))
    const running = send(client)
    await eventually('it runs', () => sockets.length === 1)
    let isClosed = false
    const closed = client.close().then(() => (isClosed = true))
    await new Promise((resolve) => setTimeout(resolve, 20))
    assert.equal(isClosed, false)
    open()
    assert.equal((await running).body, 'hello')
    await within(10_000, 'the connections close', closed)
  })

  it('fail after 5 s without a connection', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    t.mock.method(Socket.prototype, 'connect', function (this: Socket) {
      return this
    })
    const client = openClient({ origin: 'http://127.0.0.1:9' }, 10_000)
    const errors: string[] = []
    client.send(get, { ...deaf, failed: ({ message }) => errors.push(message) })
    const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
    t.mock.timers.tick(4999)
    await turn()
    assert.deepEqual(errors, [])
    t.mock.timers.tick(1)
    await eventually('it fails', () => errors.length > 0)
    assert.deepEqual(errors, ['no connection within 5 s'])
    await within(10_000, 'the client closes', client.close())
  })

  it('last longer than the 5 s in which they had to be made', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { client, sockets } = await stage(t, () => {})
    const outcome = Promise.withResolvers<string>()
    client.send(get, {
      ...deaf,
      ended: () => outcome.resolve('ended'),
      failed: ({ message }) => outcome.resolve(message),
    })
    await eventually('the request arrives', () => (sockets[0]?.bytesRead ?? 0) > 0)
    t.mock.timers.tick(60_000)
    sockets[0]?.write(HELLO)
    assert.equal(await outcome.promise, 'ended')
    await client.close()
  })

  it('go to the host and the port of the address, or to the usual port', (t) => {
    const reached: object[] = []
    t.mock.method(Socket.prototype, 'connect', function (this: Socket, ...args: unknown[]) {
      const [options] = (Array.isArray(args[0]) ? args[0] : args) as [Record<string, unknown>]
      const { host, port, path, servername, ALPNProtocols, noDelay, keepAlive, keepAliveInitialDelay } = options
      reached.push({ host, port, path, servername, ALPNProtocols })
      assert.deepEqual([noDelay, keepAlive, keepAliveInitialDelay], [true, true, 60_000])
      return this
    })
    const none = { host: undefined, port: undefined, path: undefined, servername: undefined, ALPNProtocols: undefined }
    const secure = { port: 443, ALPNProtocols: ['http/1.1'] }
    for (const [place, expected] of [
      [{ origin: 'http://engine.example' }, { host: 'engine.example', port: 80 }],
      [{ origin: 'http://engine.example:8000' }, { host: 'engine.example', port: 8000 }],
      [{ origin: 'http://[::1]:8000' }, { host: '::1', port: 8000 }],
      [{ origin: 'http://engine.example', socketPath: '/run/a.sock' }, { path: '/run/a.sock' }],
      [{ origin: 'https://engine.example' }, { ...secure, host: 'engine.example', servername: 'engine.example' }],
      // Only a name can be the name of a certificate's owner here.
      [{ origin: 'https://127.0.0.1' }, { ...secure, host: '127.0.0.1' }],
      [{ origin: 'https://[::1]:8443' }, { ...secure, host: '::1', port: 8443 }],
    ] as const) {
      openClient(place, 10_000).send(get, deaf).abort(new Error('enough'))
      assert.deepEqual(reached.pop(), { ...none, ...expected })
    }
  })

  it('reach servers on unix sockets, by IPv6, by name and with TLS', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-connections-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const serve = (socket: Socket): void => void socket.on('data', () => socket.write(HELLO)).on('error', () => {})
    const socketPath = join(folder, 'engine.sock')
    await listen(t, createServer(serve), { path: socketPath })
    const places: ServerPlace[] = [{ origin: 'http://localhost', socketPath }]
    places.push(await listen(t, createServer(serve), { port: 0, host: '::1' }, { host: '[::1]' }))
    places.push(await listen(t, createServer(serve), { port: 0, host: '127.0.0.1' }, { host: 'localhost' }))

    const [keyFile, certFile] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
    const options = ['-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost']
    const subject = ['-addext', 'subjectAltName=DNS:localhost']
    execFileSync('openssl', ['req', '-x509', ...options, ...subject, '-keyout', keyFile, '-out', certFile], {
      stdio: 'ignore',
    })
    const cert = readFileSync(certFile, 'utf8')
    const secure = createSecureServer({ key: readFileSync(keyFile), cert, ALPNProtocols: ['http/1.1'] }, serve)
    const name = { host: 'localhost', isSecure: true }
    const securePlace = await listen(t, secure, { port: 0, host: '127.0.0.1' }, name)

    const known = getCACertificates()
    t.after(() => setDefaultCACertificates(known))
    const distrustful = openClient(securePlace, 10_000)
    assert.match((await send(distrustful)).error?.message ?? '', /self-signed/)
    setDefaultCACertificates([...known, cert])
    for (const place of [...places, securePlace]) {
      const client = openClient(place, 10_000)
      for (let times = 0; times < 2; times++) assert.equal((await send(client)).body, 'hello')
      const enough = new Error('enough')
      assert.equal((await send(client, get, (sending) => sending.abort(enough))).error, enough)
      await client.close()
    }
  })
})
