import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { freePort } from './free-port.ts'

/** Stands between a client and a server, and does to their connections what networks do. */
export interface TcpProxy {
  readonly port: number
  /** Ends every connection. New ones work. */
  cut(): void
  /** From now on bytes are held, and neither side is notified. Bytes that came meanwhile go on when it is over. */
  blackHole(isOn: boolean): void
  /** From now on bytes arrive so much later. */
  delay(ms: number): void
  /** From now on connections are refused, and open ones end. */
  refuse(): Promise<void>
  close(): Promise<void>
}

export async function tcpProxy(targetPort: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>()
  let isBlackHole = false
  let delayMs = 0
  let held: (() => void)[] = []

  const server = createServer((client) => {
    const target = connect(targetPort, '127.0.0.1')
    for (const [from, to] of [
      [client, target],
      [target, client],
    ] as const) {
      sockets.add(from)
      from.setNoDelay()
      const pass = (deliver: () => void): void => {
        if (isBlackHole) held.push(deliver)
        else if (delayMs > 0) setTimeout(deliver, delayMs)
        else deliver()
      }
      from.on('data', (bytes) => pass(() => void (to.destroyed || to.write(bytes))))
      from.on('error', () => {})
      from.on('close', () => {
        sockets.delete(from)
        // The other side does not hear of it through a black hole.
        pass(() => to.destroy())
      })
    }
  })
  server.listen(await freePort(), '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const cut = (): void => {
    for (const socket of sockets) socket.destroy()
  }
  const close = async (): Promise<void> => {
    held = []
    isBlackHole = false
    cut()
    if (!server.listening) return
    server.close()
    await once(server, 'close')
  }
  return {
    port,
    cut,
    blackHole(isOn) {
      isBlackHole = isOn
      if (isOn) return
      const delivered = held
      held = []
      for (const deliver of delivered) deliver()
    },
    delay: (ms) => void (delayMs = ms),
    refuse: close,
    close,
  }
}
