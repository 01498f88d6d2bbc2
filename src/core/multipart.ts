import { ApiError } from './errors.ts'

/** Parses multipart/form-data (RFC 7578) as it arrives. Keeps only bytes that may be the start of a boundary. */

export interface PartReceiver {
  /** A part begins, with the name of its field. */
  begin(name: string): void
  /** Some bytes of the part, valid until the next push. */
  data(bytes: Buffer): void
  end(): void
}

interface MultipartParser {
  push(chunk: Buffer): void
  /** The body has ended. Throws if the form is incomplete. */
  finish(): void
}

const MAX_HEADER_BYTES = 8192
const MAX_PARTS = 64
const LINE_END = Buffer.from('\r\n')
const HEADERS_END = Buffer.from('\r\n\r\n')

type State = 'before' | 'boundary' | 'headers' | 'content' | 'after'

/** The boundary in a Content-Type; undefined if it is not a form. */
export function boundaryOf(contentType: string | undefined): string | undefined {
  if (!contentType || !/^multipart\/form-data\s*;/i.test(contentType)) return undefined
  const match = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i.exec(contentType)
  return match?.[1] ?? match?.[2]
}

export function multipartParser(boundary: string, receiver: PartReceiver): MultipartParser {
  const delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1')
  let state: State = 'before'
  let parts = 0
  // The first boundary may start the body, without the line end that precedes all others.
  let rest: Buffer = LINE_END

  /** Each step consumes what it can and returns where it stopped, or undefined if it needs more bytes. */
  const steps: Readonly<Record<State, (bytes: Buffer, from: number) => number | undefined>> = {
    before: (bytes, from) => toDelimiter(bytes, from, () => {}),
    boundary(bytes, from) {
      if (bytes.length < from + 2) return undefined
      if (bytes.toString('latin1', from, from + 2) === '--') {
        state = 'after'
        return bytes.length
      }
      const end = bytes.indexOf(LINE_END, from)
      if (end < 0) return bounded(bytes, from)
      if (bytes.toString('latin1', from, end).trim() !== '') throw malformed('a boundary is followed by other text')
      if (++parts > MAX_PARTS)
        throw new ApiError('invalid_value', `The form has too many parts: at most ${MAX_PARTS} are allowed.`)
      state = 'headers'
      // If a part has no headers, the boundary's line end is also the first half of the empty line.
      return end
    },
    headers(bytes, from) {
      const end = bytes.indexOf(HEADERS_END, from)
      if (end < 0) return bounded(bytes, from)
      if (end - from > MAX_HEADER_BYTES) throw tooLong()
      receiver.begin(fieldName(bytes.toString('utf8', from, end)))
      state = 'content'
      return end + HEADERS_END.length
    },
    content: (bytes, from) => toDelimiter(bytes, from, (content) => receiver.data(content), receiver.end),
    after: (bytes) => bytes.length,
  }

  function toDelimiter(
    bytes: Buffer,
    from: number,
    take: (content: Buffer) => void,
    ended?: () => void,
  ): number | undefined {
    const found = bytes.indexOf(delimiter, from)
    if (found >= 0) {
      if (found > from) take(bytes.subarray(from, found))
      ended?.()
      state = 'boundary'
      return found + delimiter.length
    }
    const safe = Math.max(from, endOfContent(bytes, delimiter))
    if (safe > from) take(bytes.subarray(from, safe))
    rest = bytes.subarray(safe)
    return undefined
  }

  return {
    push(chunk) {
      const bytes = rest.length > 0 ? Buffer.concat([rest, chunk]) : chunk
      rest = bytes
      let position: number | undefined = 0
      while (position !== undefined && position < bytes.length) {
        const from: number = position
        rest = bytes.subarray(from)
        position = steps[state](bytes, from)
      }
      if (position !== undefined) rest = bytes.subarray(position)
      // The chunk's memory may be reused, so the few remaining bytes are copied.
      if (rest.length > 0) rest = Buffer.from(rest)
    },
    finish() {
      if (state !== 'after') throw malformed('it ends before its last boundary')
    },
  }
}

/** The index before which no delimiter can have begun. */
function endOfContent(bytes: Buffer, delimiter: Buffer): number {
  for (let start = Math.max(0, bytes.length - delimiter.length + 1); start < bytes.length; start++) {
    if (bytes[start] === 13 && bytes.compare(delimiter, 0, bytes.length - start, start) === 0) return start
  }
  return bytes.length
}

function bounded(bytes: Buffer, from: number): undefined {
  if (bytes.length - from > MAX_HEADER_BYTES) throw tooLong()
  return undefined
}

/** The `name` in the Content-Disposition header. */
function fieldName(headers: string): string {
  const disposition = /^content-disposition:[ \t]*form-data[ \t]*((?:;[^\r\n]*)?)$/im.exec(headers)?.[1] ?? ''
  for (const [, key, quoted, bare] of disposition.matchAll(/;\s*([\w*-]+)=(?:"((?:[^"\\]|\\.)*)"|([^;\s]*))/g)) {
    if (key?.toLowerCase() === 'name') return quoted ?? bare ?? ''
  }
  throw malformed('a part has no name')
}

function tooLong(): ApiError {
  return new ApiError(
    'invalid_value',
    `The headers of a part are too long: at most ${MAX_HEADER_BYTES} bytes are allowed.`,
  )
}

function malformed(what: string): ApiError {
  return new ApiError('invalid_value', `The body is not valid multipart/form-data: ${what}.`)
}
