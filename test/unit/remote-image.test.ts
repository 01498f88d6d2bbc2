import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import { remoteImages } from '../../src/media/remote-image.ts'
import { dataUrl, png } from '../support/image-samples.ts'

describe('an image on an allowed host', () => {
  it('is not fetched from a private address behind a name, but is from one that the operator lists', async (t) => {
    let connections = 0
    const server = createServer((_request, response) => void response.end(png()))
    server.on('connection', () => connections++)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const hosts = [`localhost:${port}`, `127.0.0.1:${port}`]
    const images = remoteImages(hosts, { maxBytes: 1_000_000, maxSidePx: 1000 })
    t.after(async () => {
      await images.close()
      server.close()
    })
    const fetched = (host: string) => images.fetchImages([{ url: `http://${host}/x.png`, param: 'p' }])
    await assert.rejects(fetched(`localhost:${port}`), { code: 'invalid_value', param: 'p' })
    assert.equal(connections, 0, 'nobody has even been asked')
    assert.deepEqual(await fetched(`127.0.0.1:${port}`), [dataUrl('png', png())])
  })
})
