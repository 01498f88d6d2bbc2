import { Socket } from 'node:net'
import { openOwnPort, WAITING_CONNECTIONS, type OpenPort } from '../http/port.ts'
import type { FromWorker, ToWorker } from './messages.ts'

/** Where the connections of this process come from, which may be a worker. */
export function portOf(worker: number | undefined): OpenPort {
  return worker === undefined ? openOwnPort : openHandedPort
}

/** A port that belongs to the process that started this worker, which hands its connections over. */
const openHandedPort: OpenPort = async (take, host, port) => {
  const opened = Promise.withResolvers<number>()
  const connections = handedConnections(take)
  process.on('message', (message: ToWorker, socket: unknown) => {
    switch (message.tell) {
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
  sayToPrimary({ say: 'listen', host, port, backlog: WAITING_CONNECTIONS })
  return { port: await opened.promise, close: connections.close }
}

function handedConnections(take: (socket: Socket) => void): {
  offered(offer: number, socket?: Socket): void
  close(): void
} {
  let open = 0
  let lastOffer = 0
  let isLeaving = false
  let isToldSoon = false

  /** Once for all connections that end in one turn of the event loop. */
  function ended(): void {
    open -= 1
    if (isToldSoon || isLeaving) return
    isToldSoon = true
    setImmediate(() => {
      isToldSoon = false
      sayToPrimary({ say: 'open', open })
    })
  }

  return {
    offered(offer, socket) {
      // The same one again, because the answer came late.
      const isKnown = offer <= lastOffer
      if (isKnown || isLeaving) {
        // This closes only our end of it.
        socket?.destroy()
        if (!isKnown) sayToPrimary({ say: 'refused', offer })
        return
      }
      lastOffer = offer
      if (socket) open += 1
      sayToPrimary({ say: 'taken', offer, open })
      // It was closed before it could be sent.
      if (!socket) return
      socket.once('close', ended)
      take(socket)
    },
    close() {
      if (isLeaving) return
      isLeaving = true
      sayToPrimary({ say: 'leaving' })
    },
  }
}

/** Nobody hears it if the process that started this one has gone. */
export function sayToPrimary(message: FromWorker): void {
  process.send?.(message, undefined, undefined, () => {})
}
