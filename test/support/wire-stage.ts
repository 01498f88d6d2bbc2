import type { Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Exchange } from '../../src/server/exchange.ts'
import { openOwnPort } from '../../src/cluster/workers/port.ts'
import { listen, type Listener, type ListenOptions } from '../../src/server/server.ts'
import { rawClient, type RawClient } from './raw-client.ts'
import { eventually, within } from './waiting.ts'

/** A listener whose answers a test gives, and a caller of it. */
export interface WireStage {
  readonly listener: Listener
  readonly client: RawClient
  /** Everything that was asked for, in order. */
  readonly asked: readonly string[]
  /** How many exchanges have ended. */
  readonly ended: number
  /** Another caller. */
  call(): Promise<RawClient>
  /** The service's end of the first caller's connection. */
  readonly far: Socket
  /** Resolves when the service has read this from the first caller, in one piece. */
  arrives(text: string): Promise<void>
}

type Answer = (exchange: Exchange) => Promise<void> | void

export async function wireStage(
  t: TestContext,
  answer: Answer = echo,
  options: Partial<ListenOptions> = {},
): Promise<WireStage> {
  const ends: Socket[] = []
  const asked: string[] = []
  let ended = 0
  const listener = await listen(
    {
      async answer(exchange) {
        asked.push(`${exchange.method} ${exchange.request.target}`)
        // A test that fails must not leave it waiting.
        const gone = new Promise<void>((resolve) => exchange.onGone(resolve))
        await Promise.race([answer(exchange), gone])
      },
      rateOf: async () => undefined,
      headers: () => ({ 'X-Ours': 'yes' }),
      over: () => void ended++,
    },
    '127.0.0.1',
    0,
    {
      openPort(take, host, port) {
        const watched = (socket: Socket): void => {
          ends.push(socket)
          take(socket)
        }
        return openOwnPort(watched, host, port)
      },
      ...options,
    },
  )
  const clients: RawClient[] = []
  t.after(async () => {
    for (const client of clients) client.leave()
    await eventually('all have left', () => ends.every(({ destroyed }) => destroyed))
    await within(10_000, 'the listener closes', listener.close(0))
  })
  const call = async (): Promise<RawClient> => {
    const client = await rawClient(`http://127.0.0.1:${listener.address.port}`)
    // What is sent in pieces arrives in pieces.
    client.socket.setNoDelay(true)
    clients.push(client)
    await eventually('it is accepted', () => ends.length === clients.length)
    return client
  }
  const client = await call()
  const [far] = ends
  if (!far) throw new Error('nothing was accepted')
  return {
    listener,
    client,
    asked,
    get ended() {
      return ended
    },
    call,
    far,
    async arrives(text) {
      const until = far.bytesRead + text.length
      client.socket.write(text, 'latin1')
      while (far.bytesRead < until && !far.destroyed) await nextTurn()
    },
  }
}

/** Says what was asked for, and with what body. */
export async function echo(exchange: Exchange): Promise<void> {
  exchange.sendJson(JSON.stringify([exchange.method, exchange.request.target, await bodyOf(exchange)]))
}

/** The body, one character a byte. */
export async function bodyOf({ request }: Exchange): Promise<string> {
  let body = ''
  await new Promise<void>((resolve, reject) =>
    request.take({
      data: (chunk) => (body += chunk.toString('latin1')),
      end: resolve,
      cut: () => reject(new Error('the body was cut off')),
    }),
  )
  return body
}

/** What a client sees of an answer with a known length. */
export interface SeenAnswer {
  readonly status: number
  readonly head: string
  readonly body: string
}

/** The whole answers at the start of these bytes. All of them have a length. */
export function answersIn(received: string): SeenAnswer[] {
  const answers: SeenAnswer[] = []
  for (let from = 0; ;) {
    const end = received.indexOf('\r\n\r\n', from)
    const head = received.slice(from, end)
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1])
    if (end < 0 || !(end + 4 + length <= received.length)) return answers
    from = end + 4 + length
    answers.push({ status: Number(head.slice(9, 12)), head, body: received.slice(end + 4, from) })
  }
}

/** Waits for that many answers, and for no more than them. */
export async function answersTo(client: RawClient, count: number): Promise<SeenAnswer[]> {
  await eventually(`${count} answers`, () => answersIn(client.received).length >= count)
  return answersIn(client.received)
}
