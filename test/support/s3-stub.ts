import { createHash, createHmac } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'

/**
 * A bucket in memory that trusts no request: every request's signature is worked out from the bytes that
 * arrived, by the published algorithm and without a line of the service's own code.
 */
export interface S3Stub {
  readonly url: string
  readonly objects: Map<string, { readonly bytes: Buffer; readonly contentType: string }>
  /** What was wrong with the requests that were refused. */
  readonly refused: string[]
  /** Statuses to answer the next requests with, before anything is looked at. */
  readonly failures: number[]
  /** Puts the clock on. */
  laterMs: number
  /** What an upload that has arrived waits for. */
  until: Promise<void>
  /** How many uploads have arrived. */
  arrived: number
  close(): Promise<void>
}

const ACCESS_KEY = 'STUBACCESSKEY'
const SECRET_KEY = 'stub/secret+key'
export const s3Secrets = { access: ACCESS_KEY, secret: SECRET_KEY, region: 'ap-southeast-2' }

export async function s3Stub(): Promise<S3Stub> {
  const stub: Omit<S3Stub, 'url' | 'close'> = {
    objects: new Map(),
    refused: [],
    failures: [],
    laterMs: 0,
    until: Promise.resolve(),
    arrived: 0,
  }
  const server = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = []
      for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
      const body = Buffer.concat(chunks)
      const failure = stub.failures.shift()
      if (failure !== undefined) return void response.writeHead(failure).end('<Error><Code>SlowDown</Code></Error>')
      const path = (request.url ?? '').split('?')[0] ?? ''
      const isLink = request.headers.authorization === undefined && request.method === 'GET'
      const problem = isLink ? problemOfLink(request, stub.laterMs) : problemOfSigned(request, body)
      if (problem !== undefined) {
        stub.refused.push(problem)
        return void response.writeHead(403).end('<Error><Code>SignatureDoesNotMatch</Code></Error>')
      }
      if (request.method === 'PUT') {
        stub.arrived++
        await stub.until
        stub.objects.set(path, { bytes: body, contentType: request.headers['content-type'] ?? '' })
        return void response.writeHead(200).end()
      }
      const found = stub.objects.get(path)
      // As Google's: Amazon's answers 204 if the object to delete does not exist.
      if (!found) return void response.writeHead(404).end('<Error><Code>NoSuchKey</Code></Error>')
      if (request.method === 'DELETE') {
        stub.objects.delete(path)
        return void response.writeHead(204).end()
      }
      const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '')
      const bytes = range ? found.bytes.subarray(Number(range[1]), Number(range[2]) + 1) : found.bytes
      response.writeHead(range ? 206 : 200, { 'content-type': found.contentType }).end(bytes)
    })()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return Object.assign(stub, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  })
}

function problemOfSigned(request: IncomingMessage, body: Buffer): string | undefined {
  const fields = /^AWS4-HMAC-SHA256 Credential=([^,]+),\s*SignedHeaders=([^,]+),\s*Signature=([0-9a-f]+)$/.exec(
    request.headers.authorization ?? '',
  )
  if (!fields) return 'no authorization'
  const [, credential = '', names = '', signature] = fields
  const time = String(request.headers['x-amz-date'])
  const digest = createHash('sha256').update(body).digest('hex')
  if (request.headers['x-amz-content-sha256'] !== digest) return 'the digest is not that of the body'
  if (request.method === 'PUT' && !names.split(';').includes('content-type')) return 'the content type is not signed'
  if (Math.abs(Date.now() - timeOf(time)) > 900_000) return 'too old'
  return signatureOf(request, '', names, digest, credential, time) === signature ? undefined : 'wrong signature'
}

function problemOfLink(request: IncomingMessage, laterMs: number): string | undefined {
  const [, query = ''] = (request.url ?? '').split('?')
  const pairs = query.split('&')
  const value = (name: string): string =>
    decodeURIComponent(pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1) ?? '')
  const unsigned = pairs.filter((pair) => !pair.startsWith('X-Amz-Signature=')).sort()
  const time = value('X-Amz-Date')
  const signature = signatureOf(
    request,
    unsigned.join('&'),
    value('X-Amz-SignedHeaders'),
    'UNSIGNED-PAYLOAD',
    value('X-Amz-Credential'),
    time,
  )
  if (signature !== value('X-Amz-Signature')) return 'wrong signature'
  return Date.now() + laterMs > timeOf(time) + Number(value('X-Amz-Expires')) * 1000 ? 'expired' : undefined
}

function signatureOf(
  request: IncomingMessage,
  query: string,
  names: string,
  payload: string,
  credential: string,
  time: string,
): string {
  const [accessKey, day = '', region = '', service = '', end = ''] = credential.split('/')
  if (accessKey !== ACCESS_KEY || region !== s3Secrets.region || service !== 's3') return 'another credential'
  let canonical = `${request.method}\n${(request.url ?? '').split('?')[0]}\n${query}\n`
  for (const name of names.split(';')) canonical += `${name}:${String(request.headers[name])}\n`
  canonical += `\n${names}\n${payload}`
  const digest = createHash('sha256').update(canonical).digest('hex')
  let key: Buffer = Buffer.from(`AWS4${SECRET_KEY}`)
  for (const part of [day, region, service, end]) key = createHmac('sha256', key).update(part).digest()
  const text = `AWS4-HMAC-SHA256\n${time}\n${day}/${region}/${service}/${end}\n${digest}`
  return createHmac('sha256', key).update(text).digest('hex')
}

function timeOf(stamp: string): number {
  return Date.parse(stamp.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'))
}
