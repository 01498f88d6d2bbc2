import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { download } from '../../src/local-models/files/download.ts'

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
})
