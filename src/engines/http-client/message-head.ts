/** The server sent something that is not HTTP/1.1. */
export class BrokenMessage extends Error {
  override readonly name = 'BrokenMessage'
}

/** The headers of an answer, by lower-case name. The object has no prototype, so no name is special. */
export type AnswerHeaders = Readonly<Record<string, string | readonly string[] | undefined>>

/** How to find the end of a body. */
type BodyEnd = { readonly kind: 'length'; readonly length: number } | { readonly kind: 'chunked' | 'close' }

export const BLANK_LINE = '\r\n\r\n'

const SPACE = 0x20
const TAB = 0x09

const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
/** Control characters, and half an end of a line. Either may mean something else to the next server on the way. */
// oxlint-disable-next-line no-control-regex
const NOT_IN_A_HEAD = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)|(?<!\r)\n/

/** Passes on each line of a head, from `start`, with its name in lower case. The head has no blank line at the end. */
export function eachHeader(head: string, start: number, take: (name: string, value: string) => void): void {
  requireHeadCharacters(head)
  for (let from = start; from < head.length;) {
    const lineEnd = head.indexOf('\r\n', from)
    const end = lineEnd < 0 ? head.length : lineEnd
    const colon = head.indexOf(':', from)
    // The colon of a later line makes a name with a line end in it.
    const name = colon < 0 ? '' : head.slice(from, colon).toLowerCase()
    if (!NAME.test(name)) throw new BrokenMessage('a line of the head is no header')
    take(name, valueIn(head, colon + 1, end))
    from = end + 2
  }
}

/**
 * Without the spaces and tabs around it. (`trim` would also remove a byte that another server treats as part of it.)
 */
function valueIn(head: string, start: number, end: number): string {
  let [from, to] = [start, end]
  while (from < to && isBlank(head.charCodeAt(from))) from++
  while (from < to && isBlank(head.charCodeAt(to - 1))) to--
  return head.slice(from, to)
}

function isBlank(code: number): boolean {
  return code === SPACE || code === TAB
}

function requireHeadCharacters(text: string): void {
  if (NOT_IN_A_HEAD.test(text)) throw new BrokenMessage('the head has a character that is not allowed')
}

function readLength(text: string): BodyEnd {
  if (!/^\d{1,15}$/.test(text)) throw new BrokenMessage(`the content length ${text} is no number`)
  return { kind: 'length', length: Number(text) }
}

interface ResponseHead {
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

/** Printable latin1. A line break would begin another header. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
const TARGET = /^[\x21-\x7e]+$/

/** Headers as lines of a request's head. */
export function headerLines(headers: Readonly<Record<string, string>>): string {
  return Object.entries(headers)
    .map(([name, value]) => {
      if (!NAME.test(name) || !VALUE.test(value)) throw new TypeError(`${name} cannot be sent as a header`)
      return `${name}: ${value}\r\n`
    })
    .join('')
}

/** `lines`: all headers. */
export function requestHead(method: 'GET' | 'POST', target: string, lines: string): string {
  if (!TARGET.test(target)) throw new TypeError(`${target} cannot be the path of a request`)
  return `${method} ${target} HTTP/1.1\r\n${lines}\r\n`
}
