import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/**
 * The least that a waiting request can cost on this runtime: node:http, the body in memory, and nothing else. GET
 * returns how many requests are waiting.
 */
const held: { response: ServerResponse; body: Buffer }[] = []

const server = createServer({ keepAlive: true }, (request, response) => {
  if (request.method === 'GET') return void response.end(String(held.length))
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.once('end', () => {
    request.removeAllListeners('data')
    const body = Buffer.concat(chunks)
    if (body.includes('bench/quick')) response.end('{}')
    else held.push({ response, body })
  })
})
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
