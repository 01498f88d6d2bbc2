import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import type { EngineRequest } from '../core/job.ts'
import type { ByteSource } from '../ports.ts'

const CHUNK_BYTES = 65_536

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
      open: () => Readable.from(pieces(before, file.source, after)),
    },
  }
}

async function* pieces(before: Buffer, source: ByteSource, after: Buffer): AsyncGenerator<Buffer> {
  yield before
  for (let position = 0; position < source.length;) {
    const chunk = Buffer.allocUnsafeSlow(Math.min(CHUNK_BYTES, source.length - position))
    const count = await source.read(chunk, position)
    if (count === 0) throw new Error('the upload is shorter than it was')
    position += count
    yield chunk.subarray(0, count)
  }
  yield after
}
