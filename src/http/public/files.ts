import type { FileStore } from '../../ports/files.ts'
import type { Exchange } from '../exchange.ts'

/** GET /files/<name>: what a link of the local file store leads to. The link itself is the permission. */

export const FILES_PREFIX = '/files/'

export async function serveFile(open: NonNullable<FileStore['open']>, exchange: Exchange): Promise<void> {
  const file = await open(exchange.path.slice(FILES_PREFIX.length), exchange.query)
  await exchange.sendStream(file.stream, {
    'Content-Type': file.contentType,
    'Content-Length': String(file.length),
    'Cache-Control': `private, max-age=${file.secondsLeft}, immutable`,
    'X-Content-Type-Options': 'nosniff',
    // Opened by itself, it is a picture and nothing else.
    'Content-Security-Policy': "default-src 'none'; sandbox",
  })
}
