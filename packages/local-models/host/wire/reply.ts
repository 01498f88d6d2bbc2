import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { HostError } from '../runtime/host-error.ts'

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body)
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
  response.end(text)
}

/** Before the first byte an error is a status. After it, the error is one last event without `[DONE]`. */
export function sendError(response: ServerResponse, error: HostError): void {
  if (response.destroyed || response.writableEnded) return
  if (response.headersSent) response.end(eventText(error.body()))
  else sendJson(response, error.status, error.body())
}

export interface ServerSentEvents {
  /** Waits for a slow reader, so that nothing piles up in memory. */
  send(event: unknown): Promise<void>
  end(): void
}

export function serverSentEvents(response: ServerResponse, signal: AbortSignal): ServerSentEvents {
  const open = (): void => {
    if (response.headersSent) return
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
  }
  return {
    async send(event) {
      // Another choice of the same request failed and ended the response.
      if (response.destroyed || response.writableEnded) throw new Error('the response has ended')
      open()
      if (!response.write(eventText(event))) await once(response, 'drain', { signal })
    },
    end() {
      open()
      response.end('data: [DONE]\n\n')
    },
  }
}

function eventText(event: unknown): string {
  return `data: ${JSON.stringify(event)}\n\n`
}
