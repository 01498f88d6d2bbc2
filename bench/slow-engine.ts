import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** An engine in its own process that takes the given milliseconds for every request, however many run at once. */
const workMs = Number(process.argv[2])
const answer = JSON.stringify({
  choices: [{ index: 0, message: { role: 'assistant', content: 'Yes.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 200, completion_tokens: 1, total_tokens: 201 },
})

const server = createServer((request, response) => {
  request.resume().on('end', () => setTimeout(finish, workMs, response))
})
function finish(response: ServerResponse): void {
  response.setHeader('content-type', 'application/json').end(answer)
}
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
