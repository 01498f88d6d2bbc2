import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/**
 * An engine in its own process whose answers take from half of the given milliseconds to one and a half of them. GET tells
 * how many calls it has worked on at a time: the sum of their milliseconds.
 */
const workMs = Number(process.argv[2])
const answer = JSON.stringify({
  choices: [{ index: 0, message: { role: 'assistant', content: 'Yes.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 20, completion_tokens: 1, total_tokens: 21 },
})
let running = 0
let busyMs = 0
let changedAt = performance.now()

function change(by: number): void {
  const now = performance.now()
  busyMs += running * (now - changedAt)
  changedAt = now
  running += by
}

const server = createServer((request, response) => {
  if (request.method === 'GET') {
    change(0)
    response.end(JSON.stringify({ busyMs, at: changedAt }))
    return
  }
  change(1)
  // Also if the call is aborted.
  response.once('close', () => change(-1))
  request.resume().on('end', () => {
    setTimeout(() => response.setHeader('content-type', 'application/json').end(answer), workMs * (0.5 + Math.random()))
  })
})
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
