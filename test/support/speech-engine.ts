import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A speech server that keeps what it was sent, read by another parser than ours, and answers as a test says. */
export interface SpeechCall {
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly fields: Readonly<Record<string, readonly string[]>>
  readonly file: { readonly name: string; readonly type: string; readonly bytes: Buffer }
  /** Resolves when the caller has left before the answer. */
  readonly left: Promise<void>
}

export interface SpeechEngine {
  readonly url: string
  readonly calls: SpeechCall[]
  answer(call: SpeechCall): Promise<SpeechAnswer> | SpeechAnswer
  close(): Promise<void>
}

export interface SpeechAnswer {
  readonly status?: number
  readonly body: object
}

export const transcription = {
  task: 'transcribe',
  language: 'en',
  duration: 1.7,
  text: ' A weir lets a river through at the rate the bed below can take.',
  segments: [
    { id: 0, start: 0, end: 0.8, text: ' A weir lets a river through', tokens: [1, 2], avg_logprob: -0.25 },
    { id: 1, start: 0.8, end: 1.7, text: ' at the rate the bed below can take.', temperature: 0, no_speech_prob: 0.01 },
  ],
}

export async function speechEngine(): Promise<SpeechEngine> {
  const calls: SpeechCall[] = []
  const server = createServer((request, response) => {
    if (request.method === 'GET') response.writeHead(200).end('{}')
    else void take(request, response)
  })

  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const left = new Promise<void>((resolve) => {
      response.once('close', () => response.writableFinished || resolve())
    })
    const chunks: Buffer[] = []
    try {
      for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    } catch {
      return
    }
    const headers = { 'content-type': request.headers['content-type'] ?? '' }
    const form = await new Response(Buffer.concat(chunks), { headers }).formData()
    const file = form.get('file') as File
    const fields: Record<string, string[]> = {}
    for (const name of new Set(form.keys())) if (name !== 'file') fields[name] = form.getAll(name).map(String)
    const call = {
      path: request.url ?? '',
      headers: request.headers,
      fields,
      file: { name: file.name, type: file.type, bytes: Buffer.from(await file.arrayBuffer()) },
      left,
    }
    calls.push(call)
    const { status = 200, body } = await engine.answer(call)
    if (!response.destroyed) {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    }
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const engine: SpeechEngine = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    calls,
    answer: () => ({ body: transcription }),
    close() {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
  return engine
}
