import { once } from 'node:events'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'

export const WEBHOOK_SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

export interface ReceivedWebhook {
  readonly id: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** Verified with the library that receivers use. */
  readonly event: {
    readonly type: string
    readonly timestamp: string
    readonly data: Readonly<Record<string, unknown>>
  }
  readonly body: string
}

/** A server that receives webhooks. `answer` is the status; undefined: it never answers. */
export interface WebhookReceiver {
  readonly url: string
  readonly received: readonly ReceivedWebhook[]
  answer: { readonly status: number; readonly headers?: Readonly<Record<string, string>> } | undefined
  /** The port stays the same when it starts again. */
  start(): Promise<void>
  stop(): Promise<void>
}

interface ReceiverOptions {
  readonly port?: number
  readonly answer?: WebhookReceiver['answer']
  /** Called before it answers. */
  onReceived?(webhook: ReceivedWebhook): void
}

export async function webhookReceiver(options: ReceiverOptions = {}): Promise<WebhookReceiver> {
  const verifier = new Webhook(WEBHOOK_SECRET)
  const received: ReceivedWebhook[] = []
  let server: Server | undefined
  let port = options.port ?? 0
  function receive(request: IncomingMessage, response: ServerResponse, body: string): void {
    const event = verifier.verify(body, request.headers as Record<string, string>) as ReceivedWebhook['event']
    const id = String(request.headers['webhook-id'])
    const webhook = { id, path: request.url ?? '', headers: request.headers, event, body }
    received.push(webhook)
    options.onReceived?.(webhook)
    const { answer } = receiver
    if (answer) response.writeHead(answer.status, answer.headers).end()
  }

  const receiver: WebhookReceiver = {
    get url() {
      return `http://127.0.0.1:${port}/hook?tenant=1`
    },
    received,
    answer: 'answer' in options ? options.answer : { status: 204 },
    async start() {
      server = createServer((request, response) => {
        void text(request).then((body) => receive(request, response, body))
      })
      server.listen(port, '127.0.0.1')
      await once(server, 'listening')
      port = (server.address() as AddressInfo).port
    },
    async stop() {
      if (!server) return
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
      server = undefined
    },
  }
  await receiver.start()
  return receiver
}
