import { BrokenMessage, CHUNKED, eachHeader, NO_BODY, readLength, type BodyEnd } from '../../core/http1/header-lines.ts'
import { METHODS } from '../../node-http.ts'

/** By their names in small letters. */
export type RequestHeaders = Readonly<Record<string, string | undefined>>

export interface RequestHead {
  readonly method: string
  readonly target: string
  readonly headers: RequestHeaders
  readonly body: BodyEnd
  /** Whether the caller understands HTTP/1.1: an answer in chunks, and a word to go on. */
  readonly isNew: boolean
  /** Whether the caller wants to use the connection again. */
  readonly keepsAlive: boolean
}

/** The target is a path, `*`, or an address as a proxy gets it. */
const REQUEST_LINE = /^([A-Z-]+) ((?:[/*]|[A-Za-z]+:\/\/)[\x21-\x7e]*) HTTP\/1\.([01])$/
const methods: ReadonlySet<string> = new Set(METHODS)
/** Of these, the first one counts. */
const SINGLE: ReadonlySet<string> = new Set(['authorization', 'content-type', 'host', 'referer', 'user-agent'])

/** Reads everything up to the blank line that ends a head, without that line. */
export function readRequestHead(text: string): RequestHead {
  const lineEnd = text.indexOf('\r\n')
  const line = REQUEST_LINE.exec(lineEnd < 0 ? text : text.slice(0, lineEnd))
  const [, method = '', target = '', minor] = line ?? []
  if (!methods.has(method)) throw new BrokenMessage('the first line is no request line')
  const isNew = minor === '1'
  const headers = readHeaders(text, lineEnd < 0 ? text.length : lineEnd + 2)
  return { method, target, headers, body: bodyEnd(headers, isNew), isNew, keepsAlive: keepsAlive(headers, isNew) }
}

function readHeaders(text: string, start: number): RequestHeaders {
  const headers = Object.create(null) as Record<string, string>
  eachHeader(text, start, (name, value) => {
    const before = headers[name]
    if (before === undefined) headers[name] = value
    else if (name === 'content-length') throw new BrokenMessage('there are two content lengths')
    else if (!SINGLE.has(name)) headers[name] = `${before}${name === 'cookie' ? ';' : ','} ${value}`
  })
  return headers
}

/** Whatever another server on the way could take for another length is refused: it would hide a request in a body. */
function bodyEnd(headers: RequestHeaders, isNew: boolean): BodyEnd {
  const { 'transfer-encoding': coding, 'content-length': length } = headers
  if (coding === undefined) return length === undefined ? NO_BODY : readLength(length)
  if (length !== undefined) throw new BrokenMessage('there are a content length and a transfer encoding')
  if (!isNew || coding.toLowerCase() !== 'chunked') throw new BrokenMessage('the transfer encoding is not chunked')
  return CHUNKED
}

function keepsAlive({ connection }: RequestHeaders, isNew: boolean): boolean {
  if (connection === undefined) return isNew
  const wishes = connection.toLowerCase()
  return !/\bclose\b/.test(wishes) && (isNew || /\bkeep-alive\b/.test(wishes))
}
