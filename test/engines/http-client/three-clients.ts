import { once } from 'node:events'
import { request as nodeRequest } from 'node:http'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { Client as UndiciClient, type Dispatcher } from 'undici'
import { openClient } from '../../../src/engines/http-client/index.ts'

/** What a client made of an answer. */
export type Outcome =
  | { readonly kind: 'failed'; readonly reason: string }
  | {
      readonly kind: 'answered'
      readonly status: number
      /** By lower-case name, in order. */
      readonly headers: Readonly<Record<string, readonly string[]>>
      readonly body: string
    }

export interface Outcomes {
  readonly ours: Outcome
  readonly undici: Outcome
  readonly node: Outcome
}

/** A server that answers with these pieces, one write each, and then closes the connection. */
export interface ThreeClients {
  ask(pieces: readonly string[]): Promise<Outcomes>
  close(): Promise<void>
}

export async function threeClients(): Promise<ThreeClients> {
  const answers = new Map<string, readonly string[]>()
  let count = 0
  const server = createServer((socket) => {
    let received = ''
    socket.setNoDelay(true)
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      received += bytes.toString('latin1')
      const path = /^GET (\S+) [^]*\r\n\r\n$/.exec(received)?.[1]
      if (path !== undefined) void deliver(socket, answers.get(path) ?? [])
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const origin = `http://127.0.0.1:${port}`
  return {
    async ask(pieces) {
      const path = `/${count++}`
      answers.set(path, pieces)
      const [ours, undici, node] = await Promise.all([
        callOurs(origin, path),
        callUndici(origin, path),
        callNode(port, path),
      ])
      answers.delete(path)
      return { ours, undici, node }
    },
    async close() {
      server.close()
      await once(server, 'close')
    },
  }
}

/** Waits a turn of the loop after each piece, so that clients mostly read them one by one. */
async function deliver(socket: Socket, pieces: readonly string[]): Promise<void> {
  for (const piece of pieces) {
    socket.write(piece, 'latin1')
    if (pieces.length > 1) await new Promise((resolve) => setImmediate(resolve))
  }
  socket.end()
}

class Answer {
  status = 0
  readonly #headers: Record<string, string[]> = Object.create(null) as Record<string, string[]>
  #body = ''
  readonly outcome: Promise<Outcome>
  readonly #resolve: (outcome: Outcome) => void

  constructor() {
    const { promise, resolve } = Promise.withResolvers<Outcome>()
    this.outcome = promise
    this.#resolve = resolve
  }

  header(name: string, value: string): void {
    ;(this.#headers[name.toLowerCase()] ??= []).push(value)
  }

  data(bytes: Buffer): void {
    this.#body += bytes.toString('latin1')
  }

  ended(): void {
    this.#resolve({ kind: 'answered', status: this.status, headers: this.#headers, body: this.#body })
  }

  failed(reason: string): void {
    this.#resolve({ kind: 'failed', reason })
  }
}

async function callOurs(origin: string, path: string): Promise<Outcome> {
  const answer = new Answer()
  const client = openClient({ origin }, 60_000)
  client.send(
    { method: 'GET', path, lines: '' },
    {
      sending() {},
      resending: () => answer.failed('a new connection was taken for a used one'),
      head(status, headers) {
        answer.status = status
        for (const [name, values] of Object.entries(headers)) {
          for (const value of [values ?? []].flat()) answer.header(name, value)
        }
      },
      data: (bytes) => answer.data(bytes),
      ended: () => answer.ended(),
      failed: ({ message }) => answer.failed(message),
    },
  )
  const outcome = await answer.outcome
  await client.close()
  return outcome
}

async function callUndici(origin: string, path: string): Promise<Outcome> {
  const answer = new Answer()
  const client = new UndiciClient(origin, { headersTimeout: 0, bodyTimeout: 0 })
  const handler: Dispatcher.DispatchHandler = {
    onRequestStart() {},
    onResponseStart(controller, status) {
      if (status < 200) return
      answer.status = status
      const raw = (controller.rawHeaders ?? []) as readonly (Buffer | string)[]
      for (let index = 0; index < raw.length; index += 2) {
        answer.header(raw[index]!.toString('latin1'), Buffer.from(raw[index + 1]!).toString('latin1'))
      }
    },
    onResponseData: (_controller, bytes) => answer.data(bytes),
    onRequestUpgrade: () => answer.failed('an upgrade'),
    onResponseEnd: () => answer.ended(),
    onResponseError: (_controller, { message }) => answer.failed(message),
  }
  client.dispatch({ path, method: 'GET' }, handler)
  const outcome = await answer.outcome
  await client.destroy()
  return outcome
}

async function callNode(port: number, path: string): Promise<Outcome> {
  const answer = new Answer()
  const request = nodeRequest({ host: '127.0.0.1', port, path, agent: false })
  request.on('error', ({ message }) => answer.failed(message))
  request.on('close', () => answer.failed('the connection was closed'))
  request.on('response', (response) => {
    answer.status = response.statusCode ?? 0
    const { rawHeaders } = response
    for (let index = 0; index < rawHeaders.length; index += 2) {
      answer.header(rawHeaders[index]!, rawHeaders[index + 1]!)
    }
    response.on('data', (bytes: Buffer) => answer.data(bytes))
    response.on('error', ({ message }) => answer.failed(message))
    response.on('end', () => answer.ended())
  })
  request.end()
  const outcome = await answer.outcome
  request.destroy()
  return outcome
}
