import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'

export interface ReceivedRequest {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** Undefined without a body. */
  // oxlint-disable-next-line typescript/no-explicit-any -- whatever a test expects
  readonly body: any
}

export interface ScriptedServer {
  readonly url: string
  readonly asked: readonly ReceivedRequest[]
  /** How many of its callers have left before the end of the answer. */
  left(): number
}

/** A server on loopback that answers as the test says: JSON, a text, or whatever the test writes itself. */
export async function scriptedServer(
  t: TestContext,
  answer: (request: ReceivedRequest, response: ServerResponse) => unknown,
): Promise<ScriptedServer> {
  const asked: ReceivedRequest[] = []
  let left = 0
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    response.on('close', () => (left += response.writableFinished ? 0 : 1))
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { method = '', url: path = '', headers } = request
      const text = Buffer.concat(chunks).toString('utf8')
      const one = { method, path, headers, body: text === '' ? undefined : (JSON.parse(text) as unknown) }
      asked.push(one)
      const said = answer(one, response)
      if (said === undefined) return
      if (typeof said === 'string') response.end(said)
      else response.setHeader('content-type', 'application/json').end(JSON.stringify(said))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked, left: () => left }
}

/** Answers with a stream of these events. */
export function sendEvents(response: ServerResponse, events: readonly (object | string)[]): void {
  const lines = events.map((event) => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`)
  response.setHeader('content-type', 'text/event-stream; charset=utf-8').end(lines.join(''))
}
