import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { createServer as createSecureServer, getCACertificates, setDefaultCACertificates } from 'node:tls'
import { AnswerStalled, type SentRequest, type ServerPlace } from '../../src/engines/connection.ts'
import { openConnections, type Connections, type Sending } from '../../src/engines/connections.ts'
import { ask } from '../../src/engines/question.ts'
import { eventually, gate, within } from '../support/waiting.ts'

const HELLO = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello'
const get: SentRequest = { head: 'GET / HTTP/1.1\r\nhost: engine\r\n\r\n', body: undefined }

const closeOf = (socket: Socket | undefined): Promise<void> =>
  new Promise((resolve) => socket?.once('close', () => resolve()))

/** A server that is written by hand, byte by byte. `serve` gets each connection and what came on it so far. */
async function stage(t: TestContext, serve: (socket: Socket, received: string) => void, idleTimeoutMs = 10_000) {
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    let received = ''
    sockets.push(socket)
    socket.on('error', () => {})
    socket.on('data', (bytes) => serve(socket, (received += bytes.toString('latin1'))))
  })
  const place = await listen(t, server, { port: 0, host: '127.0.0.1' })
  t.after(() => sockets.forEach((socket) => socket.destroy()))
  return { connections: openConnections(place, idleTimeoutMs), sockets, server }
}

async function listen(t: TestContext, server: Server, at: object, isSecure = false): Promise<ServerPlace> {
  server.listen(at)
  await once(server, 'listening')
  t.after(() => server.close())
  const { port } = (server.address() as AddressInfo | null) ?? { port: 0 }
  return { host: '127.0.0.1', port, isSecure }
}

interface Outcome {
  readonly status: number
  readonly body: string
  readonly error: Error | undefined
}

/** Sends a request and waits for its end. */
function send(connections: Connections, request = get, begun?: (sending: Sending) => void): Promise<Outcome> {
  const { promise, resolve } = Promise.withResolvers<Outcome>()
  let status = 0
  let body = ''
  const end = (error?: Error): void => resolve({ status, body, error })
  const sending = connections.send(request, {
    sending() {},
    head: (code) => (status = code),
    data: (bytes) => (body += bytes.toString('latin1')),
    ended: () => end(),
    failed: end,
  })
  begun?.(sending)
  return within(10_000, 'the request ends', promise)
}

const answers = (socket: Socket, received: string): void => {
  if (received.endsWith('\r\n\r\n')) socket.write(HELLO)
}

describe('the connections to an engine', () => {
  it('are used again, one request at a time', async (t) => {
    const { connections, sockets } = await stage(t, answers)
    for (let times = 0; times < 3; times++) assert.equal((await send(connections)).body, 'hello')
    assert.equal(sockets.length, 1)
    await Promise.all([send(connections), send(connections), send(connections)])
    assert.equal(sockets.length, 3)
    await connections.close()
  })

  it('carry one request each, however many there are', async (t) => {
    const { opened, open } = gate()
    const { connections, sockets } = await stage(t, (socket) => void opened.then(() => socket.write(HELLO)))
    const all = Array.from({ length: 20 }, () => send(connections))
    await eventually('all are connected', () => sockets.length === 20)
    open()
    for (const { body } of await Promise.all(all)) assert.equal(body, 'hello')
    await connections.close()
  })

  it('are not used again once the server has closed them', async (t) => {
    const { connections, sockets } = await stage(t, answers)
    await send(connections)
    const [first] = sockets
    first?.end()
    await within(10_000, 'this side closes too', closeOf(first))
    assert.equal((await send(connections)).body, 'hello')
    assert.equal(sockets.length, 2)
    await connections.close()
  })

  it('are not used again after bytes that belong to no answer', async (t) => {
    const { connections, sockets } = await stage(t, answers)
    await send(connections)
    sockets[0]?.write('HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nsmuggle')
    await within(10_000, 'this side closes', closeOf(sockets[0]))
    assert.equal((await send(connections)).body, 'hello')
    assert.equal(sockets.length, 2)
    await connections.close()
  })

  it('are closed when they have been idle for a while', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { connections, sockets } = await stage(t, answers)
    const before = performance.now()
    const sent = new Promise<void>((resolve, reject) => {
      connections.send(get, { sending() {}, head() {}, data() {}, ended: resolve, failed: reject })
    })
    await sent
    const closed = closeOf(sockets[0])
    t.mock.method(performance, 'now', () => before + 60_000)
    t.mock.timers.tick(4000)
    await closed
    await connections.close()
  })

  it('take an answer that comes before the request was read, and are not used again', async (t) => {
    const { connections, sockets } = await stage(t, (socket) => {
      socket.pause()
      socket.write('HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\nmuch')
    })
    const body = Buffer.alloc(32 * 1024 * 1024)
    const head = `POST / HTTP/1.1\r\ncontent-length: ${body.length}\r\n\r\n`
    const { status, body: said } = await send(connections, { head, body })
    assert.deepEqual([status, said], [413, 'much'])
    sockets[0]?.resume()
    await within(10_000, 'the connection is closed', closeOf(sockets[0]))
    await connections.close()
  })

  it('send large bodies as they are, and small ones together with their heads', async (t) => {
    for (const size of [0, 1, 16_000, 16_384, 1_000_000]) {
      const head = `POST / HTTP/1.1\r\ncontent-length: ${size}\r\n\r\n`
      let seen = ''
      const { connections } = await stage(t, (socket, received) => {
        seen = received
        if (received.length === head.length + size) socket.write(HELLO)
      })
      await send(connections, { head, body: Buffer.alloc(size, 'x') })
      assert.ok(seen === head + 'x'.repeat(size), `${size} bytes arrive`)
      await connections.close()
    }
  })

  it('ask for the next piece of a body only when the one before has left', async (t) => {
    const total = 200 * 65_536
    const { connections } = await stage(t, (socket, received) => {
      if (received.length === 19 + total) socket.write(HELLO.replace('hello', received.at(-1)!.repeat(5)))
    })
    const piece = Buffer.alloc(65_536)
    const body = {
      length: total,
      async *open() {
        // Each piece is written over the one before.
        for (let number = 0; number < 200; number++) yield piece.fill(65 + (number % 26))
      },
    }
    const { body: said } = await send(connections, { head: 'POST / HTTP/1.1\r\n\r\n', body })
    assert.equal(said, 'RRRRR')
    await connections.close()
  })

  it('let go of a body whose request is given up', async (t) => {
    const { connections, sockets } = await stage(t, () => {})
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
    const { error } = await send(connections, { head: 'POST / HTTP/1.1\r\n\r\n', body }, (sending) => {
      void eventually('it is being sent', () => sockets.length === 1).then(() => sending.abort(new Error('given up')))
    })
    assert.equal(error?.message, 'given up')
    await within(10_000, 'the body is closed', opened)
    await connections.close()
  })

  it('end a request whose body cannot be read', async (t) => {
    const { connections } = await stage(t, () => {})
    const body = {
      length: 10,
      // oxlint-disable-next-line require-yield -- the file is gone
      async *open(): AsyncGenerator<Buffer> {
        throw new Error('no such file')
      },
    }
    const { error } = await send(connections, { head: 'POST / HTTP/1.1\r\n\r\n', body })
    assert.equal(error?.message, 'no such file')
    await connections.close()
  })

  it('fail with what the receiver throws', async (t) => {
    const { connections, sockets } = await stage(t, answers)
    const failed = new Promise<Error>((resolve) => {
      const data = (): never => {
        throw new Error('no room')
      }
      connections.send(get, { sending() {}, head() {}, data, ended() {}, failed: resolve })
    })
    assert.equal((await failed).message, 'no room')
    await within(10_000, 'the connection is closed', closeOf(sockets[0]))
    await connections.close()
  })

  it('end a request at once when it is given up, connected or not', async (t) => {
    const { connections, sockets } = await stage(t, () => {})
    let isOver = false
    const early = send(connections, get, (sending) => {
      sending.abort(new Error('never mind'))
      isOver = true
    })
    assert.ok(isOver)
    assert.equal((await early).error?.message, 'never mind')
    const late = send(connections, get, (sending) => {
      const isAsked = (): boolean => sockets.some(({ bytesRead }) => bytesRead > 0)
      void eventually('the server has the request', isAsked).then(() => sending.abort(new Error('too late')))
    })
    assert.equal((await late).error?.message, 'too late')
    await connections.close()
  })

  it('are reset when a request is given up, and its end comes after the engine has heard of it', async (t) => {
    const codes: unknown[] = []
    const { promise: asked, resolve: isAsked } = Promise.withResolvers<void>()
    const { connections, sockets } = await stage(t, (socket) => {
      socket.on('error', (error) => codes.push((error as NodeJS.ErrnoException).code))
      isAsked()
    })
    const ended = send(connections, get, (sending) => void asked.then(() => sending.abort(new Error('never mind'))))
    assert.equal((await ended).error?.message, 'never mind')
    assert.ok(sockets[0]?.closed)
    assert.deepEqual(codes, ['ECONNRESET'])
    await connections.close()
  })

  it('fail when nobody listens, and when the server breaks off', async (t) => {
    const { connections, server } = await stage(t, (socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello')
      socket.end()
    })
    const broken = await send(connections)
    assert.deepEqual([broken.body, broken.error?.message], ['hello', 'the engine closed the connection'])
    server.close()
    await once(server, 'close')
    assert.match((await send(connections)).error?.message ?? '', /ECONNREFUSED/)
    await connections.close()
  })

  it('fail when the engine falls silent in its answer, but not before it', async (t) => {
    const { opened, open } = gate()
    const { connections } = await stage(
      t,
      (socket) => void opened.then(() => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello')),
      50,
    )
    const outcome = send(connections)
    await new Promise((resolve) => setTimeout(resolve, 200))
    open()
    const { body, error } = await outcome
    assert.equal(body, 'hello')
    assert.ok(error instanceof AnswerStalled)
    await connections.close()
  })

  it('read nothing while they are paused, and do not take that for silence', async (t) => {
    const total = 32 * 1024 * 1024
    const { connections, sockets } = await stage(
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
    sending = connections.send(get, {
      sending() {},
      head() {},
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
    await connections.close()
  })

  it('close when the requests that run have ended', async (t) => {
    const { opened, open } = gate()
    const { connections, sockets } = await stage(t, (socket) => void opened.then(() => socket.write(HELLO)))
    const running = send(connections)
    await eventually('it runs', () => sockets.length === 1)
    let isClosed = false
    const closed = connections.close().then(() => (isClosed = true))
    await new Promise((resolve) => setTimeout(resolve, 20))
    assert.equal(isClosed, false)
    open()
    assert.equal((await running).body, 'hello')
    await within(10_000, 'the connections close', closed)
  })

  it('reach servers on unix sockets, by IPv6, by name and with TLS', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-connections-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const serve = (socket: Socket): void => void socket.on('data', () => socket.write(HELLO)).on('error', () => {})
    const socketPath = join(folder, 'engine.sock')
    const places: ServerPlace[] = [{ ...(await listen(t, createServer(serve), { path: socketPath })), socketPath }]
    places.push({ ...(await listen(t, createServer(serve), { port: 0, host: '::1' })), host: '::1' })
    places.push({ ...(await listen(t, createServer(serve), { port: 0, host: '127.0.0.1' })), host: 'localhost' })

    const [keyFile, certFile] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
    const options = ['-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost']
    const name = ['-addext', 'subjectAltName=DNS:localhost']
    execFileSync('openssl', ['req', '-x509', ...options, ...name, '-keyout', keyFile, '-out', certFile], {
      stdio: 'ignore',
    })
    const cert = readFileSync(certFile, 'utf8')
    const secure = createSecureServer({ key: readFileSync(keyFile), cert, ALPNProtocols: ['http/1.1'] }, serve)
    const securePlace = { ...(await listen(t, secure, { port: 0, host: '127.0.0.1' }, true)), host: 'localhost' }

    const known = getCACertificates()
    t.after(() => setDefaultCACertificates(known))
    const stranger = openConnections(securePlace, 10_000)
    assert.match((await send(stranger)).error?.message ?? '', /self-signed/)
    setDefaultCACertificates([...known, cert])
    for (const place of [...places, securePlace]) {
      const connections = openConnections(place, 10_000)
      for (let times = 0; times < 2; times++) assert.equal((await send(connections)).body, 'hello')
      const enough = new Error('enough')
      assert.equal((await send(connections, get, (sending) => sending.abort(enough))).error, enough)
      await connections.close()
    }
  })
})

describe('a question besides the calls', () => {
  it('has a status and a text, which ends where it becomes too long', async (t) => {
    const { connections } = await stage(t, answers)
    const limits = { head: get.head, timeoutMs: 10_000 }
    assert.deepEqual(await ask(connections, { ...limits, maxBytes: 5 }), { status: 200, isWhole: true, body: 'hello' })
    assert.deepEqual(await ask(connections, { ...limits, maxBytes: 4 }), { status: 200, isWhole: false, body: '' })
    await connections.close()
  })

  it('is given up when there is no answer in time, or nobody wants it any more', async (t) => {
    const { connections } = await stage(t, () => {})
    await assert.rejects(ask(connections, { head: get.head, timeoutMs: 20, maxBytes: 5 }), AnswerStalled)
    const stopped = new AbortController()
    const answer = ask(connections, { head: get.head, timeoutMs: 10_000, maxBytes: 5, signal: stopped.signal })
    stopped.abort()
    await assert.rejects(answer, /nobody waits/)
    await connections.close()
  })
})
