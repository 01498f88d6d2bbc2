import { request, type Dispatcher } from 'undici'
import { eventSplitter } from '../../shared/event-stream.ts'
import type { ProbeAnswer } from './doctor-engine-recognition.ts'

/** Calls to a server of unknown kind: each with a limit in time and bytes. */
export interface EngineClient {
  /** Undefined if the server does not answer in time. */
  get(url: string): Promise<ProbeAnswer | undefined>
  /** A path that begins with two slashes is relative to the server's root, any other to its base address. */
  post(path: string, body: object): Promise<ProbeAnswer>
  /** Reads events until the end, or until `enough` returns true; then it disconnects. */
  stream(path: string, body: object, enough?: (events: readonly unknown[]) => boolean): Promise<StreamSeen>
}

export interface StreamSeen {
  readonly status: number
  readonly events: readonly unknown[]
  readonly isDone: boolean
  /** The body, unless it is a stream. */
  readonly text: string
}

const PROBE_MS = 5000
/** A large model on a cold server takes this long to produce its first tokens. */
export const QUESTION_MS = 60_000
const MAX_BYTES = 4_000_000

export function engineClient(base: string, apiKey: string | undefined): EngineClient {
  const headers = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }
  const send = (path: string, body: object, signal: AbortSignal): Promise<Dispatcher.ResponseData> =>
    request(path.startsWith('//') ? new URL(base).origin + path.slice(1) : base + path, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal,
    })
  return {
    async get(url) {
      try {
        return await readAnswer(await request(url, { headers, signal: AbortSignal.timeout(PROBE_MS) }))
      } catch {
        return undefined
      }
    },
    post: async (path, body) => readAnswer(await send(path, body, AbortSignal.timeout(QUESTION_MS))),
    async stream(path, body, enough) {
      const leaving = new AbortController()
      const signal = AbortSignal.any([leaving.signal, AbortSignal.timeout(QUESTION_MS)])
      const response = await send(path, { ...body, stream: true }, signal)
      const type = String(response.headers['content-type'] ?? '')
      if (!type.startsWith('text/event-stream')) {
        const { status, text } = await readAnswer(response)
        return { status, events: [], isDone: false, text }
      }
      const events: unknown[] = []
      let isDone = false
      let bytes = 0
      const split = eventSplitter((event) => {
        if (event === '[DONE]') isDone = true
        else events.push(parsed(Buffer.from(event, 'latin1').toString('utf8')))
        return true
      })
      for await (const chunk of response.body as AsyncIterable<Buffer>) {
        bytes += chunk.length
        split(chunk)
        // Leaving the loop closes the connection.
        if (bytes > MAX_BYTES || enough?.(events)) break
      }
      return { status: response.statusCode, events, isDone, text: '' }
    },
  }
}

async function readAnswer(response: Dispatcher.ResponseData): Promise<ProbeAnswer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of response.body as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes > MAX_BYTES) break
  }
  const text = Buffer.concat(chunks).toString('utf8')
  const headers = Object.fromEntries(Object.entries(response.headers).map(([name, value]) => [name, String(value)]))
  return { status: response.statusCode, headers, text, json: parsed(text) }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
