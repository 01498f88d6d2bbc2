import type { Readable } from 'node:stream'
import { ApiError } from '../shared/errors.ts'
import { HEADROOM, parseJsonObject, scanJson } from '../shared/json/json-body.ts'

/** A line of an input file. Blank lines are left out, but they have a number. */
export interface FileLine {
  /** From 1. */
  readonly number: number
  /** Where it starts in the file, and where the next one starts. */
  readonly start: number
  readonly end: number
  /** Without the line end. undefined if the line is longer than is allowed. */
  readonly bytes: Buffer | undefined
}

const NEW_LINE = 0x0a
const MARK = Buffer.from('\uFEFF')

/** The lines of a part of a file. No more than one line is in memory at a time. */
export async function* fileLines(
  stream: Readable,
  from: { readonly number: number; readonly start: number },
  maxLineBytes: number,
): AsyncGenerator<FileLine> {
  let { number, start } = from
  let pieces: Buffer[] = []
  let length = 0

  const keep = (piece: Buffer): void => {
    length += piece.length
    if (length > maxLineBytes) pieces = []
    else pieces.push(piece)
  }
  const line = (end: number): FileLine | undefined => {
    const whole = length > maxLineBytes ? undefined : Buffer.concat(pieces)
    const bytes = start === 0 ? whole && withoutMark(whole) : whole
    const found = { number, start, end, bytes }
    number++
    start = end
    pieces = []
    length = 0
    return bytes && isBlank(bytes) ? undefined : found
  }

  for await (const chunk of stream as AsyncIterable<Buffer>) {
    let used = 0
    for (let at = chunk.indexOf(NEW_LINE); at !== -1; at = chunk.indexOf(NEW_LINE, used)) {
      keep(chunk.subarray(used, at))
      const found = line(start + length + 1)
      if (found) yield found
      used = at + 1
    }
    keep(chunk.subarray(used))
  }
  if (length > 0) {
    const found = line(start + length)
    if (found) yield found
  }
}

/** Programs on Windows start files with a byte order mark. */
function withoutMark(bytes: Buffer): Buffer {
  return bytes.subarray(0, MARK.length).equals(MARK) ? bytes.subarray(MARK.length) : bytes
}

/** Spaces, tabs and carriage returns only. */
function isBlank(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d)
}

/** The request in a line. */
export interface LineRequest {
  readonly customId: string
  /** The endpoint, below /v1. */
  readonly url: string
  /** The body, after `HEADROOM` free bytes. */
  readonly body: Buffer
}

export const MAX_CUSTOM_ID = 512

/** Throws what is wrong with the line. */
export function readLine(bytes: Buffer, endpoint: string): LineRequest {
  const padded = Buffer.allocUnsafe(HEADROOM + bytes.length)
  bytes.copy(padded, HEADROOM)
  const { value, scan } = parseJsonObject(padded, scanJson(padded))
  const { custom_id: customId, method, url, body } = value
  if (customId === undefined) throw missing('custom_id')
  if (typeof customId !== 'string' || customId === '' || customId.length > MAX_CUSTOM_ID) {
    throw new ApiError('invalid_value', `'custom_id' must be a string of 1 to ${MAX_CUSTOM_ID} characters.`, {
      param: 'custom_id',
    })
  }
  if (method === undefined) throw missing('method')
  if (method !== 'POST') throw new ApiError('invalid_value', "'method' must be POST.", { param: 'method' })
  if (url === undefined) throw missing('url')
  if (typeof url !== 'string' || pathBelowV1(url) !== endpoint) {
    throw new ApiError('invalid_value', `'url' must be the endpoint of the batch, ${endpoint}.`, { param: 'url' })
  }
  if (body === undefined) throw missing('body')
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new ApiError('invalid_type', "'body' must be an object.", { param: 'body' })
  }
  const field = scan.fields.find(({ name }) => name === 'body')
  if (!field) throw missing('body')
  // What is before the body in the line is not needed any more.
  return { customId, url: endpoint, body: padded.subarray(field.valueStart - HEADROOM, field.end) }
}

/** Our own paths are below /api/v1. */
export function pathBelowV1(url: string): string {
  return url.startsWith('/api/v1/') ? url.slice('/api'.length) : url
}

function missing(param: string): ApiError {
  return new ApiError('missing_required_parameter', `Missing required parameter: '${param}'.`, { param })
}
