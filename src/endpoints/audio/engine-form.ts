import { randomUUID } from 'node:crypto'
import type { EngineRequest } from '../../core/job.ts'
import type { ByteSource } from '../../ports/uploads.ts'

/** As much as a socket takes before it says stop, so that it always does. */
const CHUNK_BYTES = 65_536
/** One that is being sent, one to read into, and two for a socket that takes more than it should. */
const CHUNKS = 4

export interface FormFile {
  readonly source: ByteSource
  /** What the engine sees: a name with the right ending, whatever the caller's was. */
  readonly name: string
  readonly contentType: string
}

/** A form for an engine: fields first, and a file that is read from disk as the engine takes it. */
export function engineForm(
  path: string,
  fields: Readonly<Record<string, string | readonly string[]>>,
  file: FormFile,
): EngineRequest {
  const boundary = `weir-${randomUUID()}`
  const part = (head: string): string => `--${boundary}\r\nContent-Disposition: form-data; ${head}\r\n`
  const lines = Object.entries(fields).flatMap(([name, values]) =>
    [values].flat().map((value) => `${part(`name="${name}"`)}\r\n${value}\r\n`),
  )
  const type = `Content-Type: ${file.contentType}\r\n`
  const before = Buffer.from(`${lines.join('')}${part(`name="file"; filename="${file.name}"`)}${type}\r\n`)
  const after = Buffer.from(`\r\n--${boundary}--\r\n`)
  return {
    path,
    contentType: `multipart/form-data; boundary=${boundary}`,
    body: {
      length: before.length + file.source.length + after.length,
      open: () => pieces(before, file.source, after),
    },
  }
}

/** The same few buffers again and again: new ones would gather by the megabyte until they are collected. */
async function* pieces(before: Buffer, source: ByteSource, after: Buffer): AsyncGenerator<Buffer> {
  yield before
  const size = Math.min(CHUNK_BYTES, source.length)
  const buffers = Array.from({ length: CHUNKS }, () => Buffer.allocUnsafeSlow(size))
  let turn = 0
  for (let position = 0; position < source.length;) {
    const buffer = buffers[turn++ % CHUNKS] as Buffer
    const count = await source.read(buffer, position)
    if (count === 0) throw new Error('the upload is shorter than it was')
    position += count
    yield buffer.subarray(0, count)
  }
  yield after
}
