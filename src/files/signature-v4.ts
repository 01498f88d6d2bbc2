import { createHmac, hash } from 'node:crypto'

/** AWS Signature Version 4 for S3 and compatible services. Pure: the time is passed in. */
export interface Signer {
  readonly accessKey: string
  readonly secretKey: string
  readonly region: string
  readonly service: string
}

interface SignedRequest {
  readonly method: string
  readonly url: URL
  /** Without `host`. Names may be in any case. */
  readonly headers: Readonly<Record<string, string>>
  /** SHA-256 of the body in hexadecimal, or UNSIGNED-PAYLOAD. */
  readonly payloadHash: string
  /** Unix ms. */
  readonly now: number
}

const ALGORITHM = 'AWS4-HMAC-SHA256'

/** The headers to send with a request: the given ones and the three that sign it. */
export function signedHeaders(signer: Signer, request: SignedRequest): Record<string, string> {
  const time = stamp(request.now)
  const headers = { ...request.headers, 'x-amz-content-sha256': request.payloadHash, 'x-amz-date': time }
  const { names, signature } = sign(signer, { ...request, headers }, time)
  const credential = `${signer.accessKey}/${scopeOf(signer, time)}`
  return {
    ...headers,
    authorization: `${ALGORITHM} Credential=${credential},SignedHeaders=${names},Signature=${signature}`,
  }
}

/** A link that anyone can open with GET until it expires. */
export function presignedUrl(signer: Signer, url: URL, now: number, lifetimeSeconds: number): string {
  const time = stamp(now)
  const signed = new URL(url)
  const query = {
    'X-Amz-Algorithm': ALGORITHM,
    'X-Amz-Credential': `${signer.accessKey}/${scopeOf(signer, time)}`,
    'X-Amz-Date': time,
    'X-Amz-Expires': String(lifetimeSeconds),
    'X-Amz-SignedHeaders': 'host',
  }
  for (const [name, value] of Object.entries(query)) signed.searchParams.set(name, value)
  const request = { method: 'GET', url: signed, headers: {}, payloadHash: 'UNSIGNED-PAYLOAD', now }
  const { signature } = sign(signer, request, time)
  return `${signed.origin}${canonicalPath(signed)}?${canonicalQuery(signed)}&X-Amz-Signature=${signature}`
}

function signingKey({ secretKey, region, service }: Signer, day: string): Buffer {
  return ['aws4_request', service, region, day].reduceRight(hmac, Buffer.from(`AWS4${secretKey}`))
}

function sign(signer: Signer, request: SignedRequest, time: string): { names: string; signature: string } {
  const headers = Object.entries({ ...request.headers, host: request.url.host })
    .map(([name, value]) => [name.toLowerCase(), value.trim().replaceAll(/ +/g, ' ')] as const)
    .sort(([one], [other]) => (one < other ? -1 : 1))
  const names = headers.map(([name]) => name).join(';')
  const canonical = [
    request.method,
    canonicalPath(request.url),
    canonicalQuery(request.url),
    ...headers.map(([name, value]) => `${name}:${value}`),
    '',
    names,
    request.payloadHash,
  ].join('\n')
  const text = [ALGORITHM, time, scopeOf(signer, time), hash('sha256', canonical)].join('\n')
  return { names, signature: hmac(signingKey(signer, time.slice(0, 8)), text).toString('hex') }
}

/** 20130524T000000Z */
function stamp(now: number): string {
  return new Date(now).toISOString().replaceAll(/[-:]|\.\d+/g, '')
}

function scopeOf({ region, service }: Signer, time: string): string {
  return `${time.slice(0, 8)}/${region}/${service}/aws4_request`
}

/** Each segment is encoded once, as S3 requires. */
function canonicalPath(url: URL): string {
  return url.pathname
    .split('/')
    .map((segment) => encode(decodeURIComponent(segment)))
    .join('/')
}

function canonicalQuery(url: URL): string {
  return [...url.searchParams]
    .map(([name, value]) => `${encode(name)}=${encode(value)}`)
    .sort()
    .join('&')
}

/** Encodes all but the unreserved characters of RFC 3986. encodeURIComponent leaves a few others. */
function encode(text: string): string {
  return encodeURIComponent(text).replaceAll(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}
