import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import timers from 'node:timers/promises'
import { download } from '../../src/local-models/files/download.ts'
import { givenUpAfter } from '../support/undici-time.ts'
import { eventually } from '../support/waiting.ts'

/** Downloads from a server that answers like this, after an earlier attempt left `part`. Returns the file. */
async function downloaded(
  t: TestContext,
  part: string,
  answer: RequestListener,
  onBytes: (received: number, total: number | undefined) => void = () => {},
): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-download-'))
  const server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const partPath = join(folder, 'file.part')
  if (part !== '') writeFileSync(partPath, part)
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/file`
  await download({ url, partPath, onBytes, headers: { 'x-given': 'yes' } })
  return readFileSync(partPath, 'utf8')
}

describe('a download', () => {
  it('continues where an earlier attempt stopped', async (t) => {
    const file = await downloaded(t, 'hel', (request, response) => {
      assert.equal(request.headers.range, 'bytes=3-')
      response.writeHead(206).end('lo')
    })
    assert.equal(file, 'hello')
  })

  it('reports what has arrived of all, and sends the given headers without compression', async (t) => {
    const reports: (readonly [number, number | undefined])[] = []
    const report = (received: number, total: number | undefined): void => void reports.push([received, total])
    const sent: unknown[] = []
    const rest: RequestListener = ({ headers }, response) => {
      sent.push([headers['x-given'], headers['accept-encoding'], headers.range])
      response.writeHead(206, { 'content-length': 4 }).end('ello')
    }
    assert.equal(await downloaded(t, 'h', rest, report), 'hello')
    const whole: RequestListener = ({ headers }, response) => {
      sent.push([headers['x-given'], headers['accept-encoding'], headers.range])
      response.writeHead(200, { 'content-length': 5 }).end('hello')
    }
    assert.equal(await downloaded(t, '', whole, report), 'hello')
    assert.equal(
      await downloaded(t, '', (_request, response) => void response.write('x', () => response.end()), report),
      'x',
    )
    assert.deepEqual(reports, [
      [5, 5],
      [5, 5],
      [1, undefined],
    ])
    assert.deepEqual(sent, [
      ['yes', 'identity', 'bytes=1-'],
      ['yes', 'identity', undefined],
    ])
  })

  it('is complete if there is nothing after what it has, and follows up to ten redirects', async (t) => {
    assert.equal(await downloaded(t, 'hello', (_request, response) => void response.writeHead(416).end()), 'hello')
    const redirecting =
      (times: number): RequestListener =>
      ({ url = '' }, response) => {
        const done = url === '/file' ? 0 : Number(url.slice(1))
        if (done === times) response.writeHead(200).end('there')
        else response.writeHead(302, { location: `/${done + 1}` }).end()
      }
    assert.equal(await downloaded(t, '', redirecting(10)), 'there')
    await assert.rejects(downloaded(t, '', redirecting(11)), /answered 302/)
  })

  it('starts again if the server sends the whole file anyway', async (t) => {
    assert.equal(await downloaded(t, 'hel', (_request, response) => void response.writeHead(200).end('hello')), 'hello')
  })

  it('is retried after 429 and 503, and when the connection breaks', async (t) => {
    const answers: RequestListener[] = [
      (_request, response) => void response.writeHead(429).end(),
      (_request, response) => void response.writeHead(503).end(),
      (_request, response) =>
        void response.writeHead(200, { 'content-length': 5 }).write('he', () => response.destroy()),
      ({ headers }, response) => {
        // The piece may be lost with its connection, so what is missing depends on what arrived.
        const arrived = Number(/bytes=(\d+)-/.exec(headers.range ?? '')?.[1] ?? 0)
        response.writeHead(arrived === 0 ? 200 : 206).end('hello'.slice(arrived))
      },
    ]
    assert.equal(await downloaded(t, '', (request, response) => answers.shift()?.(request, response)), 'hello')
  })

  it('is given up after five attempts that received nothing, with pauses that double', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout', 'Date'] })
    const requestedAt: number[] = []
    const refused = downloaded(t, '', (_request, response) => {
      requestedAt.push(Date.now())
      response.writeHead(503).end()
    })
    const ticking = setInterval(() => t.mock.timers.tick(500), 5)
    t.after(() => clearInterval(ticking))
    await assert.rejects(refused, /^Error: 127\.0\.0\.1:\d+ answered 503$/)
    const pauses = requestedAt.slice(1).map((at, index) => at - (requestedAt[index] ?? 0))
    assert.equal(pauses.length, 4)
    for (const [index, leastMs] of [500, 1000, 2000, 4000].entries())
      assert.ok((pauses[index] ?? 0) >= leastMs, `pauses: ${pauses.join(', ')}`)
  })

  it('fails at once when the server has no such file', async (t) => {
    let requests = 0
    const refused = downloaded(t, '', (_request, response) => {
      requests++
      response.writeHead(404).end()
    })
    await assert.rejects(refused, /answered 404/)
    assert.equal(requests, 1)
  })

  /** Downloads from a server that says nothing by itself, and is not tried again. */
  async function silentServer(t: TestContext, scheme = 'http') {
    const folder = mkdtempSync(join(tmpdir(), 'weir-download-'))
    const accepted: Socket[] = []
    const server = createTcpServer((socket) => void accepted.push(socket.on('error', () => {})))
    await once(server.listen(0, '127.0.0.1'), 'listening')
    t.after(() => {
      for (const socket of accepted) socket.destroy()
      server.close()
      rmSync(folder, { recursive: true, force: true })
    })
    const pauses: unknown[] = []
    t.mock.method(timers, 'setTimeout', async (...given: unknown[]) => {
      pauses.push(given)
      throw new Error('no further attempt')
    })
    const url = `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}/file`
    const start = (options: { readonly signal?: AbortSignal } = {}): Promise<void> =>
      download({ url, partPath: join(folder, 'file.part'), onBytes() {}, ...options })
    const call = async (): Promise<Socket> => {
      await eventually('it is called', () => accepted.length === 1)
      if (scheme === 'http') await once(accepted[0]!, 'data')
      return accepted[0]!
    }
    const received = (): number => statSync(join(folder, 'file.part'), { throwIfNoEntry: false })?.size ?? 0
    return { start, call, pauses, received }
  }

  it('is tried again if the server falls silent for a minute, before its answer or in it', async (t) => {
    for (const answer of ['', 'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n1234']) {
      const { start, call, pauses, received } = await silentServer(t)
      const downloading = start()
      ;(await call()).write(answer)
      if (answer !== '') await eventually('a part arrives', () => received() === 4)
      assert.equal(await givenUpAfter(60_000, downloading), 'no further attempt')
      // It is shorter after an attempt that received something.
      assert.deepEqual(pauses, [[answer === '' ? 500 : 250, undefined, {}]])
      t.mock.restoreAll()
    }
  })

  it('fails if there is no connection within ten seconds', async (t) => {
    const { start, call } = await silentServer(t, 'https')
    const downloading = start()
    await call()
    assert.equal(await givenUpAfter(10_000, downloading), 'UND_ERR_CONNECT_TIMEOUT')
  })

  it('ends with its signal, in a request or in the pause before the next', async (t) => {
    const { start, call, pauses } = await silentServer(t)
    const stop = new AbortController()
    const stopped = assert.rejects(start({ signal: stop.signal }), { name: 'AbortError' })
    const connection = await call()
    stop.abort()
    await stopped
    await eventually('its connection is closed', () => connection.destroyed || connection.readableEnded)
    assert.deepEqual(pauses, [])
  })

  it('waits for its next attempt only as long as it is wanted', async (t) => {
    const { start, call, pauses } = await silentServer(t)
    const { signal } = new AbortController()
    const refused = assert.rejects(start({ signal }), /no further attempt/)
    ;(await call()).destroy()
    await refused
    assert.deepEqual(pauses, [[500, undefined, { signal }]])
  })

  it('leaves its connection free for the next one, whatever the answer', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-download-'))
    let connections = 0
    const statuses = [404, 416, 404, 416]
    // More than a client keeps of an answer that it does not read.
    const page = 'x'.repeat(100_000)
    const server = createServer((_request, response) => response.writeHead(statuses.shift() ?? 200).end(page))
    server.on('connection', () => connections++)
    await once(server.listen(0, '127.0.0.1'), 'listening')
    t.after(() => {
      server.closeAllConnections()
      server.close()
      rmSync(folder, { recursive: true, force: true })
    })
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/file`
    for (let call = 0; call < 5; call++)
      await download({ url, partPath: join(folder, 'part'), onBytes() {} }).catch((error: Error) =>
        assert.match(error.message, /answered 404/),
      )
    assert.deepEqual([readFileSync(join(folder, 'part'), 'utf8') === page, connections], [true, 1])
  })
})
