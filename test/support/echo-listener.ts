import type { TestContext } from 'node:test'
import { listen, type Listener, type ListenOptions } from '../../src/server/server.ts'
import { bodyOf } from './wire-stage.ts'

/** A listener that says what it was asked for, and remembers it. It answers /early before it has read the body. */
export interface EchoListener {
  readonly listener: Listener
  /** What was served: method, target, and body. */
  readonly served: string[]
  /** The headers of each. */
  readonly headers: Readonly<Record<string, string | undefined>>[]
}

export async function echoListener(
  t: Pick<TestContext, 'after'>,
  options: Partial<ListenOptions> = {},
): Promise<EchoListener> {
  const served: string[] = []
  const headers: EchoListener['headers'] = []
  const listener = await listen(
    {
      async answer(exchange) {
        const { method, path, request } = exchange
        const isEarly = path === '/early'
        const asked = isEarly ? `${method} ${request.target}` : `${method} ${request.target} ${await bodyOf(exchange)}`
        served.push(asked)
        headers.push(request.headers)
        exchange.sendJson(JSON.stringify({ asked }), isEarly ? 401 : 200)
      },
      rateOf: async () => undefined,
      headers: () => ({}),
      over() {},
    },
    '127.0.0.1',
    0,
    options,
  )
  t.after(() => listener.close(0))
  return { listener, served, headers }
}
