import { createServer } from 'node:http'
import { Pool } from 'undici'

/** What any proxy on this runtime must cost: node:http in, undici out, bytes passed on unread. */
const pool = new Pool(`http://127.0.0.1:${process.argv[3]}`, { headersTimeout: 0, bodyTimeout: 0 })

const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const body = chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)
    pool.dispatch(
      { method: 'POST', path: '/v1/chat/completions', headers: { 'content-type': 'application/json' }, body },
      {
        onRequestStart() {},
        onResponseStart(_controller, status, headers) {
          response.writeHead(status, { 'content-type': String(headers['content-type']) })
        },
        onResponseData(_controller, chunk) {
          response.write(chunk)
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
server.listen(Number(process.argv[2]), '127.0.0.1', () => process.send?.('ready'))
