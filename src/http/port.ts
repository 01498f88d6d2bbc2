import { createServer, type AddressInfo, type ListenOptions, type Server, type Socket } from 'node:net'

/** Opens the way by which connections come. */
export type OpenPort = (take: (socket: Socket) => void, host: string, port: number) => Promise<OpenPortHandle>

export interface OpenPortHandle {
  readonly port: number
  /** No more connections come. */
  close(): void
}

/**
 * Connections that the operating system holds until this process takes them; it may allow fewer. With Node's 511, a burst
 * of callers would be told to try again after a second.
 */
export const WAITING_CONNECTIONS = 4096

/** TCP itself then detects a peer that vanished silently, within about 15 s. */
export const noticeVanished = { keepAlive: true, keepAliveInitialDelay: 5000 }

/**
 * Node takes one connection of a listening socket in a turn of its event loop, and a turn takes 20 ms while hundreds of
 * streams are served. With one socket, new callers would wait for seconds. Linux spreads connections over all sockets
 * that share a port.
 */
const LISTENING_SOCKETS = process.platform === 'linux' ? 16 : 1

/** A port of this process alone. */
export const openOwnPort: OpenPort = async (take, host, port) => {
  const reusePort = LISTENING_SOCKETS > 1
  // Sockets that share a port would share it with another service of the same user, too. So it is claimed alone first; a
  // caller who comes in that moment is sent away, because a server with connections does not close.
  if (reusePort && port !== 0) await closed(await listening((socket) => socket.destroy(), { host, port }))
  const servers: Server[] = []
  const close = (): void => servers.forEach((server) => server.close())
  let opened = port
  try {
    while (servers.length < LISTENING_SOCKETS) {
      const server = await listening(take, { host, port: opened, reusePort, backlog: WAITING_CONNECTIONS })
      servers.push(server)
      opened = (server.address() as AddressInfo).port
    }
  } catch (error) {
    close()
    throw error
  }
  return { port: opened, close }
}

function listening(take: (socket: Socket) => void, options: ListenOptions): Promise<Server> {
  return new Promise((resolve, reject) => {
    // As Node's own server accepts them: that decides what the end of a caller's side means.
    const server = createServer({ ...noticeVanished, noDelay: true, allowHalfOpen: true }, take)
    // It stays: a connection that cannot be accepted must not end this process.
    server.on('error', reject)
    server.listen(options, () => resolve(server))
  })
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()))
}
