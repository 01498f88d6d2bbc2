import type { AddressInfo, Server } from 'node:net'

/** Opens the way by which connections come to a server: it gets each of them as an event. */
export type OpenPort = (server: Server, host: string, port: number) => Promise<OpenPortHandle>

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

/** A port of this process alone. */
export const openOwnPort: OpenPort = async (server, host, port) => {
  await new Promise<void>((resolve, reject) => {
    // It stays: a connection that cannot be accepted must not end this process.
    server.on('error', reject)
    server.listen({ port, host, backlog: WAITING_CONNECTIONS }, resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    close: () => void server.close(),
  }
}
