import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { download } from '../../src/local-models/files/download.ts'

/** Downloads from a server that answers like this, after an earlier attempt left `part`. Returns the file. */
async function downloaded(t: TestContext, part: string, answer: RequestListener): Promise<string> {
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
  await download({ url, partPath, onBytes() {} })
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
