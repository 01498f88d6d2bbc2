import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** A call as the engine saw it. */
export interface OrderedCall {
  /** The turn of the event loop in which it came. */
  readonly turn: number
  readonly isFirstOnConnection: boolean
  readonly content: string
  readonly maxTokens: number
}

export interface OrderedEngine {
  readonly url: string
  readonly calls: readonly OrderedCall[]
  readonly running: ReadonlySet<OrderedCall>
  close(): Promise<void>
}

/**
 * An engine that records the order in which calls arrive, and answers each with its own words after `workMs`.
 *
 * Sockets that are readable in one turn of the event loop come up in no particular order, so calls of one turn came together as
 * far as anybody can tell.
 */
export async function orderedEngine(options: {
  workMs(): number
  /** After each call that has begun. */
  begun(call: OrderedCall): void
}): Promise<OrderedEngine> {
  const calls: OrderedCall[] = []
  const running = new Set<OrderedCall>()
  const sockets = new Set<Socket>()
  const used = new WeakSet<Socket>()
  let turn = 0
  let isNoted = false

  function thisTurn(): number {
    if (!isNoted) {
      isNoted = true
      setImmediate(() => {
        turn += 1
        isNoted = false
      })
    }
    return turn
  }

  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const received = { turn: thisTurn(), isFirstOnConnection: !used.has(request.socket) }
    used.add(request.socket)
    if (request.method === 'GET') return void response.end('{}')
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as {
      messages: { content: string }[]
      max_tokens: number
      stream?: boolean
    }
    const call = { ...received, content: body.messages[0]?.content ?? '', maxTokens: body.max_tokens }
    calls.push(call)
    running.add(call)
    response.once('close', () => running.delete(call))
    options.begun(call)
    await sleep(options.workMs())
    // The first word alone, which keeps even max_tokens: 1.
    answer(response, call.content.slice(0, call.content.indexOf(' ') + 1), body.stream === true)
  }

  const server = createServer((request, response) => void take(request, response))
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    calls,
    running,
    close() {
      for (const socket of sockets) socket.destroy()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

function answer(response: ServerResponse, content: string, isStream: boolean): void {
  const usage = { prompt_tokens: 10, completion_tokens: 1, total_tokens: 11 }
  const choice = { index: 0, logprobs: null, finish_reason: 'stop' }
  if (!isStream) {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ choices: [{ ...choice, message: { role: 'assistant', content } }], usage }))
    return
  }
  const events = [
    { choices: [{ ...choice, finish_reason: null, delta: { role: 'assistant', content } }] },
    { choices: [{ ...choice, delta: {} }] },
    { choices: [], usage },
  ]
  response.setHeader('content-type', 'text/event-stream')
  response.end(`${events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')}data: [DONE]\n\n`)
}
