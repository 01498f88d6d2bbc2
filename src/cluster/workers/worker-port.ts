import { Socket } from 'node:net'
import { openOwnPort, WAITING_CONNECTIONS, type OpenPort } from './port.ts'
import type { FromWorker, ToWorker } from './messages.ts'

/** How this process gets its connections: from its own port, or from the primary if it is a worker. */
export function portOf(worker: number | undefined): OpenPort {
  return worker === undefined ? openOwnPort : openWorkerPort
}

/** A port of the primary process, which passes connections to this worker. */
const openWorkerPort: OpenPort = async (take, host, port) => {
  const opened = Promise.withResolvers<number>()
  const connections = workerConnections(take)
  process.on('message', (message: ToWorker, socket: unknown) => {
    switch (message.kind) {
      case 'listening':
        opened.resolve(message.port)
        break
      case 'not listening':
        opened.reject(Object.assign(new Error(message.message), message.cause))
        break
      case 'offer':
        connections.offered(message.offer, socket instanceof Socket ? socket : undefined)
    }
  })
  sendToPrimary({ kind: 'listen', host, port, backlog: WAITING_CONNECTIONS })
  return { port: await opened.promise, close: connections.close }
}

function workerConnections(take: (socket: Socket) => void): {
  offered(offer: number, socket?: Socket): void
  close(): void
} {
  let open = 0
  let lastOffer = 0
  let isLeaving = false
  let isReportScheduled = false

  /** Reports once for all connections that end in one turn of the event loop. */
  function ended(): void {
    open -= 1
    if (isReportScheduled || isLeaving) return
    isReportScheduled = true
    setImmediate(() => {
      isReportScheduled = false
      sendToPrimary({ kind: 'open', open })
    })
  }

  return {
    offered(offer, socket) {
      // A repeated offer, because the answer came late.
      const isKnown = offer <= lastOffer
      if (isKnown || isLeaving) {
        // This closes only this process's handle.
        socket?.destroy()
        if (!isKnown) sendToPrimary({ kind: 'refused', offer })
        return
      }
      lastOffer = offer
      if (socket) open += 1
      sendToPrimary({ kind: 'taken', offer, open })
      // The connection was closed before it could be sent.
      if (!socket) return
      socket.once('close', ended)
      take(socket)
    },
    close() {
      if (isLeaving) return
      isLeaving = true
      sendToPrimary({ kind: 'leaving' })
    },
  }
}

/** Ignores errors: the primary may have ended. */
export function sendToPrimary(message: FromWorker): void {
  process.send?.(message, undefined, undefined, () => {})
}
