import { connect, type Socket } from 'node:net'
import { eventually } from './waiting.ts'

/** A caller that is nothing but a socket: it sees every byte, and can leave, stop reading or send half a request. */
export interface RawClient {
  readonly socket: Socket
  /** Everything received so far, one character a byte. */
  readonly received: string
  /** The service closed the connection, or it broke. */
  readonly isClosed: boolean
  send(text: string): void
  /** Resolves when the text has been received. */
  sees(text: string): Promise<void>
  closed(): Promise<void>
  /** Goes away at once, without a word. */
  leave(): void
}

export async function rawClient(url: string): Promise<RawClient> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  let received = ''
  let isClosed = false
  socket.on('data', (chunk) => (received += chunk.toString('latin1')))
  socket.on('error', () => {})
  socket.on('close', () => (isClosed = true))
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve)
    socket.once('error', reject)
  })
  return {
    socket,
    get received() {
      return received
    },
    get isClosed() {
      return isClosed
    },
    send: (text) => void socket.write(text),
    async sees(text) {
      // An answer may have 50 MB, so what was searched is not searched again, and a busy machine gets its time.
      let from = 0
      const isThere = (): boolean => {
        const isFound = received.includes(text, from)
        from = Math.max(0, received.length - text.length)
        return isFound
      }
      await eventually(`the caller receives ${JSON.stringify(text)}`, isThere, 60_000)
    },
    closed: () => eventually('the connection is closed', () => isClosed),
    leave: () => void socket.resetAndDestroy(),
  }
}

/** A chat request as bytes. */
export function rawChat(key: string, body: object, headers: Readonly<Record<string, string>> = {}): string {
  const whole = { model: 'meta/test-8b', messages: [{ role: 'user', content: 'Hi' }], ...body }
  return rawPost('/api/v1/chat/completions', key, whole, headers)
}

/** A request with a JSON body as bytes. */
export function rawPost(
  path: string,
  key: string,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): string {
  const text = JSON.stringify(body)
  const lines = Object.entries({
    Host: 'weir.test',
    Authorization: `Bearer ${key}`,
    'Content-Type': 'application/json',
    'Content-Length': String(Buffer.byteLength(text)),
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`)
  return `POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n${text}`
}
