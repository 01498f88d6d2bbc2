import { randomUUID } from 'node:crypto'
import type { EngineRequest } from '../../engines/job.ts'
import type { ByteSource } from '../../server/uploads/uploads.ts'

/** A socket's high-water mark, so that writing one chunk always makes it wait for the drain. */
const CHUNK_BYTES = 65_536
/** One being sent, one to read into, and two spare in case the socket buffers more than it should. */
const CHUNKS = 4

interface FormFile {
  readonly source: ByteSource
  /** The name the engine sees. Its extension matches the content, whatever the caller's name was. */
  readonly name: string
  readonly contentType: string
}

/** A form for an engine: the fields first, then a file that is read from disk while it is sent. */
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

/** Reuses a few buffers. New ones would pile up by the megabyte until the garbage collector runs. */
async function* pieces(before: Buffer, source: ByteSource, after: Buffer): AsyncGenerator<Buffer> {
  yield before
  const size = Math.min(CHUNK_BYTES, source.length)
  const buffers = Array.from({ length: CHUNKS }, () => Buffer.allocUnsafeSlow(size))
  let turn = 0
  for (let position = 0; position < source.length;) {
    const buffer = buffers[turn++ % CHUNKS] as Buffer
    const count = await source.read(buffer, position)
    if (count === 0) throw new Error('the upload became shorter while it was sent')
    position += count
    yield buffer.subarray(0, count)
  }
  yield after
}
