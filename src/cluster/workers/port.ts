import { createServer, type AddressInfo, type ListenOptions, type Server, type Socket } from 'node:net'

/** Opens the port for connections. */
export type OpenPort = (take: (socket: Socket) => void, host: string, port: number) => Promise<OpenPortHandle>

export interface OpenPortHandle {
  readonly port: number
  /** Stops accepting connections. */
  close(): void
}

/**
 * Connections that the operating system queues until this process accepts them; it may allow fewer. With Node's default of
 * 511, clients in a burst would have to retry after a second.
 */
export const WAITING_CONNECTIONS = 4096

/** With these options, TCP detects a peer that vanished silently within about 15 s. */
export const keepAliveOptions = { keepAlive: true, keepAliveInitialDelay: 5000 }

/**
 * Node accepts one connection of a listening socket in each turn of its event loop, and a turn takes 20 ms while hundreds of
 * streams are served. With one socket, new clients would wait for seconds. Linux spreads connections over all sockets
 * that share a port.
 */
const LISTENING_SOCKETS = process.platform === 'linux' ? 16 : 1

/** A port that only this process listens on. */
export const openOwnPort: OpenPort = async (take, host, port) => {
  const reusePort = LISTENING_SOCKETS > 1
  // With reusePort, another service of the same user could listen on the same port. So first check that the port is free by
  // listening without it. Connections in that moment are closed, because a server with open connections cannot close.
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
    // The same options as Node's HTTP server: allowHalfOpen decides what happens when a client ends its side.
    const server = createServer({ ...keepAliveOptions, noDelay: true, allowHalfOpen: true }, take)
    // The listener stays after startup: a connection that cannot be accepted must not end this process.
    server.on('error', reject)
    server.listen(options, () => resolve(server))
  })
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()))
}
