import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { errors, Pool, type Dispatcher } from 'undici'

/**
 * The least that a proxy can cost on this runtime: node:http in, undici out, and no parsing. It is minimal but correct:
 * it forwards headers both ways, aborts the engine when the caller disconnects, and respects backpressure.
 */
const pool = new Pool(`http://127.0.0.1:${process.argv[2]}`, { headersTimeout: 0, bodyTimeout: 0 })
const hopByHop = new Set(['connection', 'keep-alive', 'transfer-encoding', 'host', 'content-length'])

const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  let controller: Dispatcher.DispatchController | undefined
  response.on('close', () => {
    if (!response.writableFinished) controller?.abort(new errors.RequestAbortedError())
  })
  response.on('drain', () => controller?.resume())
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const body = chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)
    pool.dispatch(
      { method: 'POST', path: process.argv[3] ?? '/v1/chat/completions', headers: endToEnd(request.headers), body },
      {
        onRequestStart(it) {
          controller = it
        },
        onResponseStart(_controller, status, headers) {
          response.writeHead(status, endToEnd(headers))
        },
        onResponseData(it, chunk) {
          if (!response.write(chunk)) it.pause()
        },
        onResponseEnd() {
          response.end()
        },
        onResponseError() {
          response.destroy()
        },
      },
    )
  })
})

function endToEnd(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const kept: IncomingHttpHeaders = {}
  for (const name in headers) if (!hopByHop.has(name)) kept[name] = headers[name]
  return kept
}

server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
