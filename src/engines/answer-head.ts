import { BrokenMessage, CHUNKED, eachHeader, NO_BODY, readLength, type BodyEnd } from '../core/http1/header-lines.ts'
import type { EngineHeaders } from '../core/job.ts'

export interface AnswerHead {
  readonly status: number
  readonly headers: EngineHeaders
  readonly body: BodyEnd
  /** Whether the connection may carry another request after this answer. */
  readonly isReusable: boolean
}

const STATUS_LINE = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: |$)/
const UNTIL_CLOSE: BodyEnd = { kind: 'close' }

/** The longest that a connection is idle. Most engines run on uvicorn, which closes it after 5 s. */
export const MAX_IDLE_MS = 4000
/** A request that is sent just before the server closes the connection would be lost. */
const CLOSE_MARGIN_MS = 1000

/** Reads everything up to the blank line that ends a head, without that line. */
export function readHead(text: string): AnswerHead {
  const lineEnd = text.indexOf('\r\n')
  const statusLine = STATUS_LINE.exec(lineEnd < 0 ? text : text.slice(0, lineEnd))
  if (!statusLine) throw new BrokenMessage('the engine did not answer in HTTP/1.1')
  const status = Number(statusLine[2])
  const headers: Record<string, string | string[]> = {}
  eachHeader(text, lineEnd < 0 ? text.length : lineEnd + 2, (name, value) => {
    const before = headers[name]
    headers[name] = before === undefined ? value : [before, value].flat()
  })
  return {
    status,
    headers,
    body: status < 200 || status === 204 || status === 304 ? NO_BODY : bodyEnd(headers),
    isReusable: isReusable(headers, statusLine[1] === '1'),
  }
}

function bodyEnd(headers: EngineHeaders): BodyEnd {
  const coding = headers['transfer-encoding']
  if (coding !== undefined) {
    if (typeof coding !== 'string' || coding.toLowerCase() !== 'chunked') {
      throw new BrokenMessage(`the engine sent its answer in the transfer encoding ${String(coding)}`)
    }
    return CHUNKED
  }
  const given = headers['content-length']
  if (given === undefined) return UNTIL_CLOSE
  if (typeof given === 'string') return readLength(given)
  const [length = '', ...others] = new Set(given)
  if (others.length > 0) throw new BrokenMessage(`the engine sent the content lengths ${String(given)}`)
  return readLength(length)
}

function isReusable(headers: EngineHeaders, isNew: boolean): boolean {
  const connection = String(headers['connection'] ?? '').toLowerCase()
  if (connection.includes('close') || (!isNew && !connection.includes('keep-alive'))) return false
  // Two lengths that disagree are the way to smuggle one answer into another.
  if (headers['transfer-encoding'] !== undefined && headers['content-length'] !== undefined) return false
  const seconds = /timeout=(\d+)/.exec(String(headers['keep-alive'] ?? ''))?.[1]
  return seconds === undefined || Number(seconds) * 1000 >= MAX_IDLE_MS + CLOSE_MARGIN_MS
}
