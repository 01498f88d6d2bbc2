import assert from 'node:assert/strict'
import dns from 'node:dns'
import { createServer, type RequestListener } from 'node:http'
import { syncBuiltinESMExports } from 'node:module'
import type { AddressInfo } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { remoteImages } from '../../src/inference/request/remote-image.ts'
import { dataUrl, jpeg, png } from '../support/image-samples.ts'
import { within } from '../support/waiting.ts'

const NOT_FETCHED = 'The image could not be fetched. Send it as a data: URL.'

/** A server of images on an address that the operator lists. */
async function stage(t: TestContext, serve: RequestListener, maxBytes = 1_000_000) {
  let connections = 0
  const server = createServer(serve)
  server.on('connection', () => connections++)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const images = remoteImages([`LocalHost:${port}`, `127.0.0.1:${port}`], { maxBytes, maxSidePx: 1000 })
  t.after(() => {
    server.closeAllConnections()
    server.close()
    void images.close().catch(() => {})
  })
  const at = (path: string): string => `http://127.0.0.1:${port}${path}`
  const fetched = (...urls: readonly string[]): Promise<string[]> =>
    images.fetchImages(urls.map((url, index) => ({ url, param: `images[${index}]` })))
  /** Resolves when no request is left. */
  const close = (): Promise<void> => within(10_000, 'no request is left', images.close())
  return { port, at, fetched, close, connections: () => connections }
}

describe('an image on an allowed host', () => {
  it('is not fetched from a private address behind a name, but is from one that the operator lists', async (t) => {
    const { port, at, fetched, connections } = await stage(t, (_request, response) => void response.end(png()))
    await assert.rejects(fetched(`http://localhost:${port}/x.png`), (error: Error & { param?: string }) => {
      assert.deepEqual([error.message, error.param], [NOT_FETCHED, 'images[0]'])
      assert.match(String(error.cause), /localhost resolves to a private address/)
      return true
    })
    assert.equal(connections(), 0, 'no connection was even tried')
    assert.deepEqual(await fetched(at('/x.png')), [dataUrl('png', png())])
  })

  it('is not fetched if its name has no public address, or is not known', async (t) => {
    const { port, fetched, connections } = await stage(t, (_request, response) => void response.end(png()))
    const found: { error: Error | null; addresses: readonly string[] } = { error: null, addresses: ['10.0.0.1', '::1'] }
    type Answer = (error: Error | null, addresses: readonly dns.LookupAddress[]) => void
    const lookup = t.mock.method(dns, 'lookup', ((_name: string, { all }: dns.LookupOptions, answer: Answer) => {
      assert.equal(all, true)
      answer(
        found.error,
        found.addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
      )
    }) as never)
    syncBuiltinESMExports()
    t.after(() => {
      lookup.mock.restore()
      syncBuiltinESMExports()
    })
    const url = `http://localhost:${port}/x.png`
    await assert.rejects(fetched(url), (error: Error) => /private address/.test(String(error.cause)))
    found.error = new Error('ENOTFOUND')
    await assert.rejects(fetched(url), (error: Error) => /ENOTFOUND/.test(String(error.cause)))
    assert.equal(connections(), 0)
  })

  it('has an address of at most 8192 characters', async (t) => {
    const { at, fetched, connections } = await stage(t, (_request, response) => void response.end(png()))
    const longest = at(`/${'a'.repeat(8192 - at('/').length)}`)
    await assert.rejects(fetched(at('/x.png'), `${longest}a`), {
      code: 'invalid_value',
      param: 'images[1]',
      message: 'The address of this image is too long: at most 8192 characters are allowed.',
    })
    assert.equal(connections(), 0)
    assert.deepEqual(await fetched(longest), [dataUrl('png', png())])
  })

  it('is requested by its path and query, and as an image', async (t) => {
    const asked: unknown[] = []
    const { at, fetched } = await stage(t, ({ method, url, headers }, response) => {
      asked.push([method, url, headers.accept])
      response.end(jpeg())
    })
    // The type that the server declares does not count.
    assert.deepEqual(await fetched(at('/a/b.png?size=1&x')), [dataUrl('jpeg', jpeg())])
    assert.deepEqual(asked, [['GET', '/a/b.png?size=1&x', 'image/png,image/jpeg,image/webp,image/gif']])
  })

  it('is refused on every other host, port and scheme, before anything is fetched', async (t) => {
    const { port, at, fetched, connections } = await stage(t, (_request, response) => void response.end(png()))
    for (const url of [`http://127.0.0.1:${port + 1}/`, 'http://127.0.0.1/', 'http://example.com/', 'no address', '']) {
      await assert.rejects(fetched(at('/'), url), { code: 'unsupported_content', param: 'images[1]' }, url)
    }
    assert.equal(connections(), 0)
  })

  it('is fetched together with others, within the size limit of one', async (t) => {
    const small = png({ more: 100 })
    const { at, fetched } = await stage(t, (_request, response) => void response.end(small), 2 * small.length)
    assert.deepEqual(await fetched(at('/1'), at('/2')), [dataUrl('png', small), dataUrl('png', small)])
    await assert.rejects(fetched(at('/1'), at('/2'), at('/3')), (error: Error) => {
      assert.equal(error.message, NOT_FETCHED)
      assert.match(String(error.cause), new RegExp(`exceed ${2 * small.length} bytes`))
      return true
    })
  })

  it('is complete if it arrives in many pieces', async (t) => {
    const image = png({ more: 300_000 })
    const { at, fetched } = await stage(t, (_request, response) => {
      for (let from = 0; from < image.length; from += 10_000) response.write(image.subarray(from, from + 10_000))
      response.end()
    })
    assert.deepEqual(await fetched(at('/')), [dataUrl('png', image)])
  })

  it('is refused with any status but 200, and its connection is free again', async (t) => {
    t.mock.method(AbortSignal, 'timeout', () => new AbortController().signal)
    for (const status of [201, 204, 302, 404, 500]) {
      const { at, fetched, close } = await stage(t, (_request, response) => {
        response.writeHead(status, { location: '/elsewhere' })
        // More than a connection buffers.
        response.end(status === 204 ? undefined : Buffer.alloc(4_000_000))
      })
      await assert.rejects(fetched(at('/')), (error: Error) => {
        assert.equal(error.message, NOT_FETCHED)
        assert.match(String(error.cause), new RegExp(`status ${status}`))
        return true
      })
      await close()
    }
  })

  it('is refused if it is no image, or too large a one', async (t) => {
    const { at, fetched } = await stage(t, ({ url }, response) => {
      response.end(url === '/wide' ? png({ width: 1001 }) : url === '/fits' ? png({ width: 1000 }) : 'no image')
    })
    await assert.rejects(fetched(at('/')), {
      code: 'invalid_value',
      param: 'images[0]',
      message: 'The fetched image cannot be used: it must be a png, jpeg, webp or gif.',
    })
    await assert.rejects(fetched(at('/wide')), {
      code: 'invalid_value',
      message: 'The fetched image cannot be used: it must be an image of at most 1000 pixels a side, not 1001 x 1.',
    })
    assert.equal((await fetched(at('/fits'))).length, 1)
  })

  it('is aborted after ten seconds, whether the server is silent or slow', async (t) => {
    const limit = { now: new AbortController() }
    const { mock } = t.mock.method(AbortSignal, 'timeout', () => limit.now.signal)
    for (const starts of [false, true]) {
      limit.now = new AbortController()
      const arrived = Promise.withResolvers<void>()
      const { at, fetched } = await stage(t, (_request, response) => {
        if (starts) response.write(png())
        arrived.resolve()
      })
      const fetching = fetched(at('/'))
      await arrived.promise
      limit.now.abort()
      await assert.rejects(within(10_000, 'it is given up', fetching), { code: 'invalid_value', message: NOT_FETCHED })
    }
    assert.deepEqual(
      mock.calls.map(({ arguments: [ms] }) => ms),
      [10_000, 10_000],
    )
  })
})
