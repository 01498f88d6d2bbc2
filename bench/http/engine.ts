import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** The cheapest realistic engine: it reads the request and answers at once, so that the bench measures only the path. */
const TOKENS = 64
const head = '"id":"e","object":"chat.completion.chunk","created":1,"model":"engine-name"'
const delta = (content: string, finish: string): string =>
  `data: {${head},"choices":[{"index":0,"delta":${content},"logprobs":null,"finish_reason":${finish}}]}\n\n`
const usage =
  '"usage":{"prompt_tokens":200,"completion_tokens":64,"total_tokens":264,"prompt_tokens_details":{"cached_tokens":0}}'
const first = delta('{"role":"assistant","content":""}', 'null')
const token = delta('{"content":" river"}', 'null')
const last = `${delta('{}', '"stop"')}data: {${head},"choices":[],${usage}}\n\ndata: [DONE]\n\n`
const whole = `{"id":"e","object":"chat.completion","created":1,"model":"engine-name","choices":[{"index":0,"message":{"role":"assistant","content":"${' river'.repeat(TOKENS)}"},"logprobs":null,"finish_reason":"stop"}],${usage}}`

const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    if (!Buffer.concat(chunks).includes('"stream":true')) {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': whole.length })
      response.end(whole)
      return
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(first)
    let sent = 0
    // One write per turn of the event loop, so that tokens arrive one by one, as from a real engine.
    const next = (): void => {
      if (sent++ < TOKENS) {
        response.write(token)
        setImmediate(next)
      } else response.end(last)
    }
    setImmediate(next)
  })
})
server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () =>
  process.send?.((server.address() as AddressInfo).port),
)
