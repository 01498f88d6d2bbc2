import {
  BrokenMessage,
  eachHeader,
  readLength,
  requireHeadCharacters,
  type AnswerHeaders,
  type BodyEnd,
} from './header-lines.ts'

export interface ResponseHead {
  readonly status: number
  readonly headers: AnswerHeaders
  readonly body: BodyEnd
  /** Whether the connection may carry another request after this answer. */
  readonly isReusable: boolean
}

/** No real reason phrase is longer. It is not used. */
const MAX_STATUS_LINE_BYTES = 4096
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: |$)/
const NO_BODY: BodyEnd = { kind: 'length', length: 0 }
const CHUNKED: BodyEnd = { kind: 'chunked' }
const UNTIL_CLOSE: BodyEnd = { kind: 'close' }

/** The longest that a connection is kept idle. Most engines run on uvicorn, which closes it after 5 s. */
export const MAX_IDLE_MS = 4000
/** A request that is sent just before the server closes the connection would be lost. */
const CLOSE_MARGIN_MS = 1000

/**
 * Throws as soon as these bytes cannot become a head, because a server with another protocol may be waiting for us now.
 * The bytes before `start` have been checked.
 */
export function requireBeginning(text: string, start: number): void {
  const lineEnd = text.indexOf('\r')
  const line = lineEnd < 0 ? text : text.slice(0, lineEnd)
  readStatusLine(lineEnd < 0 ? line + 'HTTP/1.1 200 '.slice(line.length) : line)
  // The line feed of a CRLF may be the first byte of this read, or may not have arrived yet.
  const from = text[start - 1] === '\r' ? start - 1 : start
  requireHeadCharacters(text.slice(from, text.endsWith('\r') ? -1 : undefined))
}

function readStatusLine(line: string): RegExpExecArray {
  const parts = line.length > MAX_STATUS_LINE_BYTES ? undefined : STATUS_LINE.exec(line)
  if (!parts) throw new BrokenMessage('the server did not answer in HTTP/1.1')
  return parts
}

/** Reads a head, given without the blank line that ends it. */
export function readHead(text: string): ResponseHead {
  const lineEnd = text.indexOf('\r\n')
  const statusLine = readStatusLine(lineEnd < 0 ? text : text.slice(0, lineEnd))
  const status = Number(statusLine[2])
  const headers = Object.create(null) as Record<string, string | string[]>
  eachHeader(text, lineEnd < 0 ? text.length : lineEnd + 2, (name, value) => {
    const before = headers[name]
    if (before === undefined) headers[name] = value
    else if (typeof before === 'string') headers[name] = [before, value]
    else before.push(value)
  })
  // The headers that describe the body must be valid, even if this answer cannot have one.
  const end = bodyEnd(headers)
  return {
    status,
    headers,
    body: status < 200 || status === 204 || status === 304 ? NO_BODY : end,
    isReusable: isReusable(headers, statusLine[1] === '1'),
  }
}

function bodyEnd(headers: AnswerHeaders): BodyEnd {
  const coding = headers['transfer-encoding']
  const length = headers['content-length']
  // Two lengths allow response smuggling.
  if (coding !== undefined && length !== undefined) throw new BrokenMessage('the server sent a length and chunks')
  if (coding === undefined) return length === undefined ? UNTIL_CLOSE : readLength(String(length))
  if (String(coding).toLowerCase() === 'chunked') return CHUNKED
  throw new BrokenMessage(`the server sent its answer in the transfer encoding ${String(coding)}`)
}

function isReusable(headers: AnswerHeaders, isNew: boolean): boolean {
  const connection = String(headers['connection'] ?? '').toLowerCase()
  if (connection.includes('close') || (!isNew && !connection.includes('keep-alive'))) return false
  const seconds = /timeout=(\d+)/.exec(String(headers['keep-alive'] ?? ''))?.[1]
  return seconds === undefined || Number(seconds) * 1000 >= MAX_IDLE_MS + CLOSE_MARGIN_MS
}
