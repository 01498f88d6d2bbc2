import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Answers at once with the largest allowed batch of vectors, in base64 and in vLLM's format. */
const VECTORS = 2048
const DIMENSIONS = 1024

const data = Array.from({ length: VECTORS }, (_, index) => {
  const vector = Float32Array.from({ length: DIMENSIONS }, (__, at) => Math.sin(index * DIMENSIONS + at))
  return { index, object: 'embedding', embedding: Buffer.from(vector.buffer).toString('base64') }
})
const usage = { prompt_tokens: 16_384, total_tokens: 16_384, completion_tokens: 0, prompt_tokens_details: null }
const body = Buffer.from(
  JSON.stringify({ id: 'embd-1', object: 'list', created: 1, model: 'engine-name', data, usage }),
)

const server = createServer((request, response) => {
  request.resume()
  request.on('end', () => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
    response.end(body)
  })
})
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
