import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { s3Files } from '../../src/files/s3.ts'
import { systemClock } from '../../src/system-clock.ts'
import { s3Secrets, s3Stub } from '../support/s3-stub.ts'

describe('a bucket that callers reach at another address than the service', () => {
  it('gets files at its own, and its links are signed for the address of the callers', async (t) => {
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
    const link = await files.put(Buffer.from('picture'), 'image/png')
    assert.ok(link.startsWith(`${publicUrl}/pictures/`), link)
    assert.equal(await (await fetch(link)).text(), 'picture')
    assert.deepEqual(bucket.refused, [])
  })
})
