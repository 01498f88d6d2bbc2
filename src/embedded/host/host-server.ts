import { setMaxListeners } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { EngineError } from './runtime/engine-model.ts'
import { speechToText } from './wire/audio.ts'
import { chatCompletions } from './wire/chat.ts'
import { completions } from './wire/completions.ts'
import { embeddings } from './wire/embeddings.ts'
import type { Exchange, ModelPool } from './wire/exchange.ts'
import { imageGenerations } from './wire/images.ts'
import { sendError, sendJson } from './wire/reply.ts'
import { ranking, rerank } from './wire/reranking.ts'

export interface HostServerOptions {
  models: ModelPool
  health: () => Promise<object>
  log: (message: string) => void
}

type Handler = (exchange: Exchange) => Promise<void>

/** The OpenAI-compatible dialect in front of whatever models the host holds. */
export function hostServer({ models, health, log }: HostServerOptions): Server {
  const routes: Record<string, Handler> = {
    'GET /health': async ({ response }) => sendJson(response, 200, await health()),
    'POST /v1/chat/completions': chatCompletions,
    'POST /v1/completions': completions,
    'POST /v1/embeddings': embeddings,
    'POST /v1/rerank': rerank,
    'POST /v1/ranking': ranking,
    'POST /v1/images/generations': imageGenerations,
    'POST /v1/audio/transcriptions': (exchange) => speechToText(exchange, 'transcribe'),
    'POST /v1/audio/translations': (exchange) => speechToText(exchange, 'translate'),
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? '').split('?', 1)[0]
    const handler = routes[`${request.method} ${path}`]
    const aborter = new AbortController()
    // Each of the `n` answers of a request listens.
    setMaxListeners(0, aborter.signal)
    response.on('close', () => {
      if (!response.writableFinished) aborter.abort()
    })
    try {
      if (!handler) throw new EngineError(404, 'unknown_url', `Unknown request URL: ${request.method} ${path}.`)
      await handler({ request, response, models, signal: aborter.signal })
    } catch (error) {
      if (aborter.signal.aborted) return
      if (!(error instanceof EngineError)) log(`${request.method} ${path} failed: ${String(error)}`)
      sendError(response, error)
    }
  }

  // The only caller is the gateway, which has its own timeouts; ours would cut long generations or idle connections.
  const server = createServer({ requestTimeout: 0, headersTimeout: 0, keepAliveTimeout: 0 })
  server.on('request', (request, response) => void handle(request, response))
  return server
}
