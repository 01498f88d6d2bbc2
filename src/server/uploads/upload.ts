import { isUtf8 } from 'node:buffer'
import { once } from 'node:events'
import { MIMEType } from 'node:util'
import { Dicer } from '@fastify/busboy'
import { ApiError, CallerLeft } from '../../shared/errors.ts'
import type { Spool, SpooledFile } from './uploads.ts'
import type { Exchange } from '../exchange.ts'

/** A form with one file, which is written to disk as it arrives. The other fields are text. */
export interface Upload {
  /** By name, with the values in the order they arrived. */
  readonly fields: ReadonlyMap<string, readonly string[]>
  /** The field `file`; undefined if the form has none. */
  readonly file: SpooledFile | undefined
  /** The name that the caller gave the file; '' if it gave none. */
  readonly fileName: string
}

/** For all other fields together. */
const MAX_FIELD_BYTES = 256 * 1024
/** By how much a body may be larger than its file. */
const MAX_AROUND_BYTES = 1024 * 1024
const MAX_PARTS = 64
/** Of one part. */
const MAX_HEADER_BYTES = 8192
/** RFC 2046. */
const MAX_BOUNDARY_LENGTH = 70
/** Both halves of a media type, after RFC 6838, and the slash. */
const MAX_TYPE_LENGTH = 255

/** Reads the form and passes it to `use`. The file is deleted before this returns, also after an error. */
export async function withUpload(
  exchange: Exchange,
  spool: Spool,
  maxFileBytes: number,
  use: (upload: Upload) => Promise<void>,
): Promise<void> {
  const boundary = requireForm(exchange)
  const declared = Number(exchange.request.headers['content-length'] ?? 0)
  if (declared > maxFileBytes + MAX_AROUND_BYTES) throw tooLarge(maxFileBytes)
  const form = openForm(() => spool.open(exchange.owner), maxFileBytes)
  try {
    await readForm(exchange, boundary, form, maxFileBytes)
    await use(form)
  } finally {
    await form.file?.close()
  }
}

function requireForm(exchange: Exchange): string {
  const { 'content-type': type, 'content-encoding': encoding } = exchange.request.headers
  const form = parseType(type ?? '')
  const boundary = form?.params.get('boundary')
  if (form?.essence !== 'multipart/form-data' || !boundary || boundary.length > MAX_BOUNDARY_LENGTH) {
    throw new ApiError(
      'unsupported_media_type',
      'Send the file as a form, with the header Content-Type: multipart/form-data and its boundary.',
    )
  }
  if (encoding && encoding !== 'identity') {
    throw new ApiError('unsupported_media_type', 'Send the body uncompressed: Content-Encoding is not supported.')
  }
  return boundary
}

interface Form extends Upload {
  add(field: FormField, content: AsyncIterable<Buffer>): Promise<void>
}

interface FormField {
  readonly name: string
  readonly fileName: string
}

function openForm(openFile: () => Promise<SpooledFile>, maxFileBytes: number): Form {
  const fields = new Map<string, string[]>()
  let file: SpooledFile | undefined
  let fileName = ''
  let fieldBytes = 0

  async function addFile(content: AsyncIterable<Buffer>, givenName: string): Promise<void> {
    if (file) {
      throw new ApiError('invalid_value', "The form has more than one 'file'. Send one file at a time.", {
        param: 'file',
      })
    }
    file = await openFile()
    fileName = givenName
    for await (const bytes of content) {
      if (file.length + bytes.length > maxFileBytes) throw tooLarge(maxFileBytes)
      await file.append([bytes])
    }
  }

  async function addField(name: string, content: AsyncIterable<Buffer>): Promise<void> {
    const pieces: Buffer[] = []
    for await (const bytes of content) {
      fieldBytes += bytes.length
      if (fieldBytes > MAX_FIELD_BYTES) {
        throw new ApiError(
          'request_too_large',
          `The form's fields are too large: at most ${MAX_FIELD_BYTES} bytes are allowed in total.`,
        )
      }
      pieces.push(bytes)
    }
    const value = Buffer.concat(pieces)
    if (!isUtf8(value)) {
      throw new ApiError('invalid_value', 'This field of the form is not valid UTF-8.', { param: name })
    }
    fields.set(name, [...(fields.get(name) ?? []), value.toString('utf8')])
  }

  return {
    fields,
    get file() {
      return file
    },
    get fileName() {
      return fileName
    },
    add: ({ name, fileName: given }, content) => (name === 'file' ? addFile(content, given) : addField(name, content)),
  }
}

/** Reads one part after the other. Nothing is read from the caller while the disk is busy. */
async function readForm(exchange: Exchange, boundary: string, form: Form, maxFileBytes: number): Promise<void> {
  const parser = new Dicer({ boundary })
  const finished = new Promise<void>((resolve) => parser.once('finish', resolve))
  const failed = Promise.withResolvers<never>()
  failed.promise.catch(() => {})
  parser.on('error', () => failed.reject(malformed('it ends before its last boundary')))
  let last: Dicer.PartStream | undefined
  let parts = 0
  let reading = Promise.resolve()
  parser.on('part', (part) => {
    last = part
    if (++parts > MAX_PARTS) {
      failed.reject(new ApiError('invalid_value', `The form has too many parts: at most ${MAX_PARTS} are allowed.`))
    }
    // Its reader notices an error on its own, and may not be attached yet.
    part.on('error', () => {})
    let headers: PartHeaders = {}
    part.once('header', (it) => (headers = it as PartHeaders))
    // Content, or the end if the part is empty: both follow the headers.
    const begun = once(part, 'readable')
    begun.catch(() => {})
    reading = reading.then(async () => {
      await begun
      await form.add(fieldOf(headers), part)
    })
    reading.catch(failed.reject)
  })
  let bytes = 0
  try {
    await eachChunk(exchange, async (chunk) => {
      bytes += chunk.length
      if (bytes > maxFileBytes + MAX_AROUND_BYTES) failed.reject(tooLarge(maxFileBytes))
      const written = new Promise((resolve) => parser.write(chunk, resolve))
      await Promise.race([failed.promise, written, finished])
    })
    parser.end()
    await Promise.race([failed.promise, finished])
    await reading
  } catch (error) {
    // Many clients read the answer only after they have sent everything, so the rest is read and discarded.
    exchange.request.discard()
    last?.destroy(new Error('the form is not read further'))
    // The file must not be closed while it is being opened or written.
    await reading.catch(() => {})
    throw error
  }
}

/** Takes one chunk at a time. The end may arrive while the last one is still being processed. */
function eachChunk({ request }: Exchange, take: (chunk: Buffer) => Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    request.take({
      data(chunk) {
        request.pause()
        take(Buffer.from(chunk)).then(() => request.resume(), reject)
      },
      end: resolve,
      cut: () => reject(new CallerLeft()),
    })
  })
}

type PartHeaders = Readonly<Record<string, readonly string[]>>

/** From the Content-Disposition header, whose parameters are written like those of a media type. */
function fieldOf(headers: PartHeaders): FormField {
  const lines = Object.entries(headers).flatMap(([name, values]) => values.map((value) => `${name}: ${value}\r\n`))
  if (lines.reduce((sum, line) => sum + line.length, 0) > MAX_HEADER_BYTES) {
    throw new ApiError(
      'invalid_value',
      `The headers of a part are too long: at most ${MAX_HEADER_BYTES} bytes are allowed.`,
    )
  }
  const disposition = parseType(`multipart/${headers['content-disposition']?.[0]}`)
  const name = disposition?.essence === 'multipart/form-data' ? disposition.params.get('name') : undefined
  if (name === undefined || name === null) throw malformed('a part has no name')
  const decoded = (text: string): string => Buffer.from(text, 'latin1').toString('utf8')
  return { name: decoded(name), fileName: decoded(disposition?.params.get('filename') ?? '') }
}

/** Node takes time that grows with the square of the white space in a media type, so its length is checked first. */
function parseType(text: string): MIMEType | undefined {
  const [type = ''] = text.split(';', 1)
  if (type.length > MAX_TYPE_LENGTH) return undefined
  try {
    return new MIMEType(text)
  } catch {
    return undefined
  }
}

function malformed(what: string): ApiError {
  return new ApiError('invalid_value', `The body is not valid multipart/form-data: ${what}.`)
}

function tooLarge(maxFileBytes: number): ApiError {
  const size = maxFileBytes >= 2 ** 20 ? `${Math.floor(maxFileBytes / 2 ** 20)} MiB` : `${maxFileBytes} bytes`
  return new ApiError('request_too_large', `The file is too large: at most ${size} are allowed. Split it.`, {
    param: 'file',
  })
}
