import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { describe, it } from 'node:test'
import { presignedUrl, signedHeaders, type Signer } from '../../src/files/signature-v4.ts'

/** The examples from AWS's documentation ("Authenticating Requests: AWS Signature Version 4", S3 API reference). */
const signer: Signer = {
  accessKey: 'AKIAIOSFODNN7EXAMPLE',
  secretKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
  region: 'us-east-1',
  service: 's3',
}
const now = Date.UTC(2013, 4, 24)
const empty = hash('sha256', '')
const url = (path: string): URL => new URL(path, 'https://examplebucket.s3.amazonaws.com')

const signatureIn = (headers: Record<string, string>): string | undefined =>
  /Signature=([0-9a-f]{64})$/.exec(headers['authorization'] ?? '')?.[1]

describe('AWS Signature Version 4, checked against the examples in its documentation', () => {
  it('signs GET Object', () => {
    const headers = signedHeaders(signer, {
      method: 'GET',
      url: url('/test.txt'),
      headers: { Range: 'bytes=0-9' },
      payloadHash: empty,
      now,
    })
    assert.equal(signatureIn(headers), 'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41')
    assert.equal(
      headers['authorization'],
      'AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
    )
    assert.equal(headers['x-amz-date'], '20130524T000000Z')
  })

  it('signs PUT Object with a character in the name that must be encoded', () => {
    const headers = signedHeaders(signer, {
      method: 'PUT',
      url: url('/test$file.text'),
      headers: { Date: 'Fri, 24 May 2013 00:00:00 GMT', 'x-amz-storage-class': 'REDUCED_REDUNDANCY' },
      payloadHash: hash('sha256', 'Welcome to Amazon S3.'),
      now,
    })
    assert.equal(signatureIn(headers), '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd')
  })

  it('signs a request with an empty query parameter, and with two', () => {
    const sign = (path: string): string | undefined =>
      signatureIn(signedHeaders(signer, { method: 'GET', url: url(path), headers: {}, payloadHash: empty, now }))
    assert.equal(sign('/?lifecycle'), 'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543')
    assert.equal(sign('/?prefix=J&max-keys=2'), '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7')
  })

  it('signs a link', () => {
    assert.equal(
      presignedUrl(signer, url('/test.txt'), now, 86_400),
      'https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404',
    )
  })
})
