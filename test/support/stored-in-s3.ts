import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { storedInS3 } from '../../src/server/files/s3.ts'
import type { StoredFiles } from '../../src/server/files/stored-files.ts'
import { systemClock } from '../../src/shared/system-clock.ts'
import { s3Secrets, s3Stub, type S3Stub } from './s3-stub.ts'

/** Files in a bucket of the test, which must refuse none of their requests. The test closes the files. */
export async function storedInStub(t: TestContext): Promise<{ stored: StoredFiles; bucket: S3Stub }> {
  const bucket = await s3Stub()
  const stored = storedInS3(
    {
      endpoint: bucket.url,
      bucket: 'bucket',
      region: s3Secrets.region,
      accessKey: s3Secrets.access,
      secretKey: s3Secrets.secret,
      prefix: 'weir/',
      publicUrl: undefined,
      linkTtlSeconds: 60,
    },
    systemClock,
  )
  t.after(async () => {
    await bucket.close()
    assert.deepEqual(bucket.refused, [])
  })
  return { stored, bucket }
}
