import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout } from 'node:timers/promises'

export interface FileServer {
  url: string
  /** The GET requests that were answered, in order. */
  requests: { path: string; range: string | undefined }[]
  /** The credentials of the latest request for each path. */
  readonly credentials: ReadonlyMap<string, string | undefined>
  bytesSent: () => number
  /** The delay before each of the next pieces. */
  setDelay(ms: number): void
  /** Breaks every connection. */
  cut(): void
  close(): Promise<void>
}

export interface ServedFile {
  content: Buffer
  headers?: Record<string, string>
}

/** Serves files with ranges. With a delay it sends small pieces, so that a test can cut a download in the middle. */
export async function fileServer(files: Record<string, ServedFile>, delayMs = 0): Promise<FileServer> {
  const requests: FileServer['requests'] = []
  const credentials = new Map<string, string | undefined>()
  let sent = 0
  let delay = delayMs
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? '')
    credentials.set(path, request.headers.authorization)
    const file = files[path]
    if (!file) {
      response.writeHead(404).end()
      return
    }
    if (request.method === 'HEAD') {
      response.writeHead(200, { ...file.headers, 'content-length': file.content.length }).end()
      return
    }
    requests.push({ path, range: request.headers.range })
    const start = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0)
    if (start >= file.content.length) {
      response.writeHead(416).end()
      return
    }
    const body = file.content.subarray(start)
    response.writeHead(start > 0 ? 206 : 200, { ...file.headers, 'content-length': body.length })
    void (async () => {
      for (let at = 0; at < body.length && !response.destroyed; at += 65_536) {
        const piece = body.subarray(at, at + 65_536)
        sent += piece.length
        response.write(piece)
        if (delay > 0) await setTimeout(delay)
      }
      response.end()
    })()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    credentials,
    bytesSent: () => sent,
    setDelay: (ms) => (delay = ms),
    cut: () => server.closeAllConnections(),
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
}
