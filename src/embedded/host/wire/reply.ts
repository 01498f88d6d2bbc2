import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { EngineError } from '../runtime/engine-model.ts'

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  sendText(response, status, 'application/json', JSON.stringify(body))
}

export function sendText(response: ServerResponse, status: number, contentType: string, body: string): void {
  response.writeHead(status, { 'content-type': contentType, 'content-length': Buffer.byteLength(body) })
  response.end(body)
}

export function errorBody(error: unknown): {
  error: { message: string; type: string; param: string | null; code: string }
} {
  if (error instanceof EngineError) {
    const { message, type, param, code } = error
    return { error: { message, type, param, code } }
  }
  const message = error instanceof Error ? error.message : String(error)
  return { error: { message, type: 'server_error', param: null, code: 'internal_error' } }
}

/** Before the first byte an error is a status; after it, one last event without `[DONE]`. */
export function sendError(response: ServerResponse, error: unknown): void {
  if (response.destroyed || response.writableEnded) return
  if (response.headersSent) {
    response.end(`data: ${JSON.stringify(errorBody(error))}\n\n`)
    return
  }
  sendJson(response, error instanceof EngineError ? error.status : 500, errorBody(error))
}

export interface EventStream {
  send(event: unknown): Promise<void>
  end(): void
}

/** Server-sent events. `send` waits for a slow reader instead of buffering without bound. */
export function eventStream(response: ServerResponse, signal: AbortSignal): EventStream {
  const open = () => {
    if (response.headersSent) return
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
  }
  return {
    async send(event) {
      // Another answer of the same request failed: this one ends as well.
      if (response.destroyed || response.writableEnded) throw new Error('the response has ended')
      open()
      if (!response.write(`data: ${JSON.stringify(event)}\n\n`)) await once(response, 'drain', { signal })
    },
    end() {
      open()
      response.end('data: [DONE]\n\n')
    },
  }
}
