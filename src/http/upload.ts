import { isUtf8 } from 'node:buffer'
import { ApiError, CallerLeft } from '../core/errors.ts'
import { boundaryOf, multipartParser, type PartReceiver } from '../core/multipart.ts'
import type { Spool, SpooledFile } from '../ports/uploads.ts'
import type { Exchange } from './exchange.ts'

/** A form with one file, which goes to disk as it arrives. The other fields are text. */
export interface Upload {
  /** By name, with the values in the order they arrived. */
  readonly fields: ReadonlyMap<string, readonly string[]>
  /** The field `file`; undefined if the form has none. */
  readonly file: SpooledFile | undefined
}

/** For all other fields together. */
const MAX_FIELD_BYTES = 256 * 1024
/** How much a body may be larger than its file. */
const MAX_AROUND_BYTES = 1024 * 1024

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
    await readForm(exchange, boundary, form)
    await use(form)
  } finally {
    await form.file?.close()
  }
}

function requireForm(exchange: Exchange): string {
  const { 'content-type': type, 'content-encoding': encoding } = exchange.request.headers
  const boundary = boundaryOf(type)
  if (boundary === undefined) {
    throw new ApiError(
      'unsupported_media_type',
      'Send the audio as a form, with the header Content-Type: multipart/form-data and its boundary.',
    )
  }
  if (encoding && encoding !== 'identity') {
    throw new ApiError('unsupported_media_type', 'Send the body uncompressed: Content-Encoding is not supported.')
  }
  return boundary
}

interface Form extends Upload, PartReceiver {
  /** Writes what has arrived of the file to disk. */
  spill(): Promise<void>
}

function openForm(openFile: () => Promise<SpooledFile>, maxFileBytes: number): Form {
  const fields = new Map<string, string[]>()
  let file: SpooledFile | undefined
  let files = 0
  let part = ''
  let value: Buffer[] = []
  let waiting: Buffer[] = []
  let fieldBytes = 0
  let fileBytes = 0
  return {
    fields,
    get file() {
      return file
    },
    begin(name) {
      part = name
      if (name === 'file' && ++files > 1) {
        throw new ApiError('invalid_value', "The form has more than one 'file'. Send one recording at a time.", {
          param: 'file',
        })
      }
    },
    data(bytes) {
      if (part === 'file') {
        fileBytes += bytes.length
        if (fileBytes > maxFileBytes) throw tooLarge(maxFileBytes)
        waiting.push(bytes)
        return
      }
      fieldBytes += bytes.length
      if (fieldBytes > MAX_FIELD_BYTES) {
        throw new ApiError(
          'request_too_large',
          `The form's fields are too large: at most ${MAX_FIELD_BYTES} bytes are allowed in total.`,
        )
      }
      value.push(Buffer.from(bytes))
    },
    end() {
      if (part === 'file') return
      const bytes = Buffer.concat(value)
      if (!isUtf8(bytes))
        throw new ApiError('invalid_value', 'This field of the form is not valid UTF-8.', { param: part })
      fields.set(part, [...(fields.get(part) ?? []), bytes.toString('utf8')])
      value = []
    },
    async spill() {
      if (files > 0) file ??= await openFile()
      if (waiting.length === 0) return
      await file?.append(waiting)
      waiting = []
    },
  }
}

/** Takes one chunk at a time, so that nothing is read from the caller while the disk is busy. */
async function readForm(exchange: Exchange, boundary: string, form: Form): Promise<void> {
  const { request } = exchange
  const parser = multipartParser(boundary, form)
  try {
    await eachChunk(exchange, async (chunk) => {
      parser.push(chunk)
      await form.spill()
      release(chunk)
    })
    parser.finish()
  } catch (error) {
    // Many clients read the answer only after they have sent everything, so the rest is read and discarded.
    request.discard()
    throw error
  }
}

/**
 * Settles only after the chunk in hand has been taken, even if the caller leaves first: the file must not be
 * closed while it is being opened or written. (An async iterator would join the chunks that arrive meanwhile into
 * new buffers.)
 */
function eachChunk(exchange: Exchange, take: (chunk: Buffer) => Promise<void>): Promise<void> {
  const { request } = exchange
  return new Promise((resolve, reject) => {
    let taken = Promise.resolve()
    request.take({
      data(chunk) {
        request.pause()
        taken = take(Buffer.from(chunk))
        taken.then(() => request.resume(), reject)
      },
      // The end may arrive while the last chunk is still being written.
      end: () => void taken.then(resolve, reject),
      cut() {
        const left = (): void => reject(new CallerLeft())
        taken.then(left, left)
      },
    })
  })
}

/**
 * Frees the memory of a chunk immediately, unless the chunk shares it. The garbage collector would let a whole
 * upload's worth of chunks pile up first.
 */
function release(chunk: Buffer): void {
  const { buffer } = chunk
  if (buffer instanceof ArrayBuffer && buffer.byteLength === chunk.length) buffer.transfer(0)
}

function tooLarge(maxFileBytes: number): ApiError {
  const size = maxFileBytes >= 2 ** 20 ? `${Math.floor(maxFileBytes / 2 ** 20)} MiB` : `${maxFileBytes} bytes`
  return new ApiError(
    'request_too_large',
    `The file is too large: at most ${size} are allowed. Split a long recording, preferably at silence.`,
    { param: 'file' },
  )
}
