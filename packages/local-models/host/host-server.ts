import { setMaxListeners } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { HostError } from './runtime/host-error.ts'
import { speechToText } from './wire/audio.ts'
import { chatCompletions } from './wire/chat.ts'
import { completions } from './wire/completions.ts'
import { embeddings } from './wire/embeddings.ts'
import type { HostCall, ModelPool } from './wire/host-call.ts'
import { imageGenerations } from './wire/images.ts'
import { readRequestJson } from './wire/body.ts'
import { requiredString } from './wire/fields.ts'
import { sendError, sendJson } from './wire/reply.ts'
import { ranking, rerank } from './wire/reranking.ts'

export interface HostServerOptions {
  readonly models: ModelPool
  health(): Promise<object>
  unload(slug: string): Promise<void>
  log(message: string): void
}

/** An OpenAI-compatible server for the models of one host. */
export function hostServer({ models, health, unload, log }: HostServerOptions): Server {
  const routes: Readonly<Record<string, (call: HostCall) => Promise<void>>> = {
    'GET /health': async ({ response }) => sendJson(response, 200, await health()),
    'POST /unload': async ({ request, response }) => {
      await unload(requiredString(await readRequestJson(request), 'model'))
      sendJson(response, 200, {})
    },
    'POST /v1/chat/completions': chatCompletions,
    'POST /v1/completions': completions,
    'POST /v1/embeddings': embeddings,
    'POST /v1/rerank': rerank,
    'POST /v1/ranking': ranking,
    'POST /v1/images/generations': imageGenerations,
    'POST /v1/audio/transcriptions': (call) => speechToText(call, 'transcribe'),
    'POST /v1/audio/translations': (call) => speechToText(call, 'translate'),
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const route = `${request.method} ${(request.url ?? '').split('?', 1)[0]}`
    const callerLeft = new AbortController()
    const { signal } = callerLeft
    // Each of the `n` choices of a request adds a listener.
    setMaxListeners(0, signal)
    response.on('close', () => {
      if (!response.writableFinished) callerLeft.abort()
    })
    try {
      const handler = routes[route]
      if (!handler) throw new HostError('unknown_url', `The engine host does not serve ${route}.`)
      await handler({ request, response, models, signal })
    } catch (error) {
      if (signal.aborted) return
      if (error instanceof HostError) return sendError(response, error)
      log(`${route} failed: ${String(error)}`)
      sendError(response, new HostError('internal_error', error instanceof Error ? error.message : String(error)))
    }
  }

  // The service is the only caller and has timeouts of its own. Ours would cut long answers and idle connections.
  const server = createServer({ requestTimeout: 0, headersTimeout: 0, keepAliveTimeout: 0 })
  server.on('request', (request, response) => void answer(request, response))
  return server
}
