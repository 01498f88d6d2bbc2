import type { FileStore } from '../../server/files/files.ts'
import { openRoute, type OpenRoute } from '../../server/route.ts'

/** Serves the files that links of the local file store point to. The signed link is the permission. */
export function fileRoutes(files: FileStore | undefined): readonly OpenRoute[] {
  const open = files?.open
  if (!open) return []
  return [
    openRoute('/files/{name+}', async (exchange, { name }) => {
      const file = await open(name, exchange.query)
      await exchange.sendStream(file.stream, {
        'Content-Type': file.contentType,
        'Content-Length': String(file.length),
        'Cache-Control': `private, max-age=${file.secondsLeft}, immutable`,
        'X-Content-Type-Options': 'nosniff',
        // Opened on its own, the file can only be displayed: it runs no scripts and loads nothing.
        'Content-Security-Policy': "default-src 'none'; sandbox",
      })
    }),
  ]
}
