import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** One request to a server and its answer, as documented. */
export interface FixtureCall {
  readonly path: string
  /** A JSON body, or the fields of a form with any file. */
  readonly request?: unknown
  readonly form?: Readonly<Record<string, readonly string[]>>
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** A complete answer, or the data of its events. */
  readonly response?: unknown
  readonly events?: readonly unknown[]
  /** Or everything that a real server sent, from the status line to the last byte: a file beside the fixture. */
  readonly captured?: string
}

/** Replaces the real server: it accepts exactly the expected requests and gives the prepared answers. */
export interface FixtureServer {
  readonly url: string
  /** Sets the next requests, in this order. */
  expect(calls: readonly FixtureCall[], folder: URL): void
  /** The ids of the requests that came since. */
  readonly requestIds: readonly unknown[]
  /** Throws if a request was wrong or missing. */
  verify(): void
  close(): Promise<void>
}

export async function fixtureServer(): Promise<FixtureServer> {
  let pending: FixtureCall[] = []
  let files: URL
  let problem: unknown
  const requestIds: unknown[] = []

  const server = createServer((request, response) => {
    if (request.method === 'GET') response.writeHead(200).end('{}')
    else void take(request, response)
  })

  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const call = pending.shift()
      assert.ok(call, `unexpected request to ${request.url}`)
      requestIds.push(request.headers['x-request-id'])
      const { form, json } = await read(request)
      assert.deepEqual(
        { path: request.url, form, request: json },
        { path: call.path, form: call.form, request: call.request },
      )
      if (call.captured === undefined) answer(call, response)
      // Every captured answer ends with its connection.
      else request.socket.end(readFileSync(new URL(call.captured, files)))
    } catch (error) {
      problem ??= error
      response.writeHead(500).end()
    }
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    expect(calls, folder) {
      pending = [...calls]
      files = folder
      problem = undefined
      requestIds.length = 0
    },
    requestIds,
    verify() {
      if (problem) throw problem
      assert.deepEqual(pending, [], 'calls that did not come')
    },
    close() {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

function answer(call: FixtureCall, response: ServerResponse): void {
  if (call.events) {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const event of call.events) {
      response.write(`data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`)
    }
    response.end()
  } else {
    response.writeHead(call.status ?? 200, { 'content-type': 'application/json', ...call.headers })
    response.end(JSON.stringify(call.response))
  }
}

async function read(request: IncomingMessage): Promise<{ form?: Record<string, string[]>; json?: unknown }> {
  const chunks: Buffer[] = []
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
  const body = Buffer.concat(chunks)
  const type = request.headers['content-type'] ?? ''
  if (!type.startsWith('multipart/')) return { json: JSON.parse(body.toString('utf8')) }
  const data = await new Response(body, { headers: { 'content-type': type } }).formData()
  assert.ok(data.get('file') instanceof File, 'the form has a file')
  const names = [...new Set(data.keys())].filter((name) => name !== 'file')
  return { form: Object.fromEntries(names.map((name) => [name, data.getAll(name).map(String)])) }
}
