import { createReadStream } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { pipeline } from 'node:stream'
import { createInflateRaw } from 'node:zlib'

const END_RECORD_BYTES = 22
const MAX_COMMENT_BYTES = 65_535
const MAX_DIRECTORY_BYTES = 16 * 1024 * 1024
const ENTRY_BYTES = 46
const LOCAL_HEADER_BYTES = 30

interface ZipEntry {
  readonly isDeflated: boolean
  readonly packedBytes: number
  readonly headerAt: number
}

/** Reads one member of a zip archive, such as a Python wheel. Keeps only a chunk in memory. */
export async function* zipMemberBytes(archivePath: string, memberPath: string): AsyncGenerator<Buffer> {
  const file = await open(archivePath)
  let start: number
  let entry: ZipEntry
  try {
    entry = await findEntry(file, memberPath)
    const header = await readAt(file, entry.headerAt, LOCAL_HEADER_BYTES)
    if (header.readUInt32LE(0) !== 0x04034b50) throw new Error('the package is not a zip archive')
    start = entry.headerAt + LOCAL_HEADER_BYTES + header.readUInt16LE(26) + header.readUInt16LE(28)
  } finally {
    await file.close()
  }
  if (entry.packedBytes === 0) return
  const packed = createReadStream(archivePath, { start, end: start + entry.packedBytes - 1 })
  if (!entry.isDeflated) return yield* packed as AsyncIterable<Buffer>
  const unpacked = createInflateRaw()
  // An error of either stream destroys both. The iterator below then throws it.
  pipeline(packed, unpacked, () => {})
  yield* unpacked as AsyncIterable<Buffer>
}

/** Looks the member up in the directory at the end of the archive. */
async function findEntry(file: FileHandle, memberPath: string): Promise<ZipEntry> {
  const { size } = await file.stat()
  const tailBytes = Math.min(size, END_RECORD_BYTES + MAX_COMMENT_BYTES)
  const tail = await readAt(file, size - tailBytes, tailBytes)
  const end = tail.lastIndexOf(Buffer.from('PK\x05\x06', 'latin1'))
  if (end < 0 || end + END_RECORD_BYTES > tail.length) throw new Error('the package is not a zip archive')
  const directoryBytes = tail.readUInt32LE(end + 12)
  if (directoryBytes > MAX_DIRECTORY_BYTES) throw new Error('the directory of the package is too large')
  const directory = await readAt(file, tail.readUInt32LE(end + 16), directoryBytes)
  for (let at = 0; at + ENTRY_BYTES <= directory.length;) {
    const nameBytes = directory.readUInt16LE(at + 28)
    if (directory.toString('utf8', at + ENTRY_BYTES, at + ENTRY_BYTES + nameBytes) === memberPath) {
      return entryAt(directory, at)
    }
    at += ENTRY_BYTES + nameBytes + directory.readUInt16LE(at + 30) + directory.readUInt16LE(at + 32)
  }
  throw new Error(`${memberPath} is not in the package`)
}

function entryAt(directory: Buffer, at: number): ZipEntry {
  const method = directory.readUInt16LE(at + 10)
  if (method !== 0 && method !== 8) throw new Error(`the package uses the unknown compression method ${method}`)
  return {
    isDeflated: method === 8,
    packedBytes: directory.readUInt32LE(at + 20),
    headerAt: directory.readUInt32LE(at + 42),
  }
}

async function readAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, position)
  if (bytesRead < length) throw new Error('the package ends too early')
  return buffer
}
