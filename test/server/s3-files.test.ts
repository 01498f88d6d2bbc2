import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, it } from 'node:test'
import { s3Files, storedInS3 } from '../../src/server/files/s3.ts'
import { systemClock } from '../../src/shared/system-clock.ts'
import { s3Secrets, s3Stub } from '../support/s3-stub.ts'
import { givenUpAfter } from '../support/undici-time.ts'
import { eventually, gate } from '../support/waiting.ts'

const settings = {
  bucket: 'pictures',
  region: s3Secrets.region,
  accessKey: s3Secrets.access,
  secretKey: s3Secrets.secret,
  prefix: 'weir/',
  publicUrl: undefined,
  linkTtlSeconds: 60,
}

describe('a bucket', () => {
  it('is called a second time after a failure, and one success is enough', async (t) => {
    const bucket = await s3Stub()
    const files = s3Files({ ...settings, endpoint: `${bucket.url}/` }, systemClock)
    t.after(async () => {
      await files.close()
      await bucket.close()
    })
    bucket.failures.push(500)
    const link = await files.put(Buffer.from('picture'), 'image/jpeg', 'acme')
    assert.match(link, /\/pictures\/weir\/[0-9a-f]{32}\.jpg\?/)
    assert.equal(new URL(link).searchParams.get('X-Amz-Expires'), '60')
    assert.equal(await (await fetch(link)).text(), 'picture')
    assert.equal([...bucket.objects.values()][0]?.contentType, 'image/jpeg')

    bucket.failures.push(500, 403)
    await assert.rejects(files.put(Buffer.from('picture'), 'image/png', 'acme'), {
      code: 'service_unavailable',
      message: /could not be stored/,
    })
    assert.equal(bucket.failures.length, 0)
    // A bucket that has taken it is not asked again.
    const [taken, before] = [gate(), bucket.arrived]
    bucket.until = taken.opened
    const storing = files.put(Buffer.from('picture'), 'image/png', 'acme')
    await eventually('it has arrived', () => bucket.arrived > before)
    bucket.failures.push(500, 500)
    taken.open()
    await storing
    assert.equal(bucket.failures.length, 2)
  })
})

describe('answers of a bucket', () => {
  it('are read whatever they have, so that their connections are free again', async (t) => {
    let answers = 0
    const server = createServer((request, response) => {
      // More than the system keeps for a reader.
      request.resume().on('end', () => response.end(Buffer.alloc(16 * 1024 * 1024), () => (answers += 1)))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const images = s3Files({ ...settings, endpoint }, systemClock)
    const stored = storedInS3({ ...settings, endpoint }, systemClock)
    t.after(() => {
      // The files wait for answers that they do not read.
      void Promise.all([images.close(), stored.close()])
      server.closeAllConnections()
      server.close()
    })
    const content = { length: 1, read: async (into: Buffer) => into.write('x') }
    const calls = [
      () => images.put(Buffer.from('picture'), 'image/jpeg', 'acme'),
      () => stored.write('a', content),
      () => stored.remove('a'),
    ]
    for (const [index, call] of calls.entries()) {
      await call()
      await eventually('the answer has been read', () => answers === index + 1)
    }
  })
})

describe('an answer of a server that is no S3', () => {
  it('is not read to its end', async (t) => {
    let writes = 0
    const server = createServer((_request, response) => {
      response.writeHead(404)
      const write = (): void => {
        if (++writes === 2000) response.end()
        else response.write(Buffer.alloc(65_536, 'x'), (error) => error ?? write())
      }
      write()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const files = s3Files({ ...settings, endpoint: `http://127.0.0.1:${port}` }, systemClock)
    t.after(async () => {
      await files.close()
      server.close()
    })
    await assert.rejects(files.put(Buffer.from('picture'), 'image/jpeg', 'acme'), { code: 'service_unavailable' })
    assert.ok(writes < 2000, String(writes))
  })
})

describe('a bucket that falls silent', () => {
  it('is given up after five seconds without a connection, and after thirty without a part of its answer', async (t) => {
    const accepted: Socket[] = []
    const silent = createTcpServer((socket) => void accepted.push(socket)).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const { port } = silent.address() as AddressInfo
    const [secure, plain] = ['https', 'http'].map((scheme) =>
      storedInS3({ ...settings, endpoint: `${scheme}://127.0.0.1:${port}` }, systemClock),
    )
    assert.ok(secure && plain)
    t.after(() => {
      for (const socket of accepted) socket.destroy()
      silent.close()
      void Promise.all([secure.close(), plain.close()])
    })
    const accepts = (count: number): Promise<void> => eventually('it is called', () => accepted.length === count)

    const unconnected = secure.read('a', 0, 9)
    await accepts(1)
    assert.equal(await givenUpAfter(5000, unconnected), 'UND_ERR_CONNECT_TIMEOUT')

    const unanswered = plain.read('a', 0, 9)
    await accepts(2)
    await once(accepted[1]!, 'data')
    assert.equal(await givenUpAfter(30_000, unanswered), 'UND_ERR_HEADERS_TIMEOUT')

    const answered = plain.read('a', 0, 9)
    await accepts(3)
    await once(accepted[2]!, 'data')
    accepted[2]!.write('HTTP/1.1 206 Partial Content\r\ncontent-length: 9\r\n\r\n1234')
    const body = await answered
    await once(body, 'readable')
    assert.equal(await givenUpAfter(30_000, text(body)), 'UND_ERR_BODY_TIMEOUT')
  })
})

describe('a bucket that callers reach at another address than the service', () => {
  it('gets files at its own address, and its links are signed for the address of the callers', async (t) => {
    const bucket = await s3Stub()
    const publicUrl = bucket.url.replace('127.0.0.1', 'localhost')
    assert.notEqual(publicUrl, bucket.url)
    const files = s3Files(
      {
        endpoint: bucket.url,
        bucket: 'pictures',
        region: s3Secrets.region,
        accessKey: s3Secrets.access,
        secretKey: s3Secrets.secret,
        prefix: '',
        publicUrl,
        linkTtlSeconds: 60,
      },
      systemClock,
    )
    t.after(async () => {
      await files.close()
      await bucket.close()
    })
    const link = await files.put(Buffer.from('picture'), 'image/png', 'acme')
    assert.ok(link.startsWith(`${publicUrl}/pictures/`), link)
    assert.equal(await (await fetch(link)).text(), 'picture')
    assert.deepEqual(bucket.refused, [])
  })
})
