import type { ChildProcess } from 'node:child_process'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { noticeVanished } from '../http/port.ts'
import { handOut, type Taker } from './hand-out.ts'
import type { FromWorker, ListenFailure, ToWorker } from './messages.ts'

/** The port of all workers. It is open from when the first of them asks for it, and outlives each of them. */
export interface SharedPort {
  /** Hands connections to this worker, from when it asks for the port until it leaves or ends. */
  serve(worker: ChildProcess): void
  close(): void
}

/**
 * A worker that works answers within milliseconds. On a machine with too much to do it may take longer, above all while it
 * starts, and would have fewer connections than the others for as long as those are kept.
 */
const SILENT_MS = 3000
/** Connections that no worker has taken yet; it takes some milliseconds for each. */
const WAITING_MAX = 16_384

export function sharedPort(silentMs = SILENT_MS): SharedPort {
  const hand = handOut<Socket>({
    drop: (socket) => void socket.destroy(),
    now: () => performance.now(),
    maxWaiting: WAITING_MAX,
    silentMs,
  })
  const looking = setInterval(() => hand.look(performance.now()), silentMs).unref()
  let opening: Promise<Server> | undefined

  return {
    serve(worker) {
      let taker: Taker | undefined
      // A worker that has just ended hears nothing.
      const tell = (message: ToWorker, socket?: Socket): void =>
        void worker.send(message, socket, { keepOpen: true }, () => {})

      async function listen(host: string, port: number, backlog: number): Promise<void> {
        try {
          const server = await (opening ??= open(host, port, backlog, (socket) => hand.arrived(socket)))
          tell({ tell: 'listening', port: (server.address() as AddressInfo).port })
          if (worker.connected) taker = hand.join((offer, socket) => tell({ tell: 'offer', offer }, socket))
        } catch (error) {
          opening = undefined
          const { message, code, syscall, address, port } = error as Error & ListenFailure
          tell({ tell: 'not listening', message, cause: { code, syscall, address, port } })
        }
      }

      worker.on('message', (message: FromWorker) => {
        switch (message.say) {
          case 'listen':
            void listen(message.host, message.port, message.backlog)
            break
          case 'taken':
            taker?.taken(message.offer, message.open)
            break
          case 'refused':
            taker?.refused(message.offer)
            break
          case 'open':
            taker?.has(message.open)
            break
          case 'leaving':
            taker?.leave()
            break
          case 'running':
          // That is for whoever starts the workers.
        }
      })
      // Unlike 'exit', it comes after the last message of the worker. Unlike 'disconnect', it comes with an offer on its way.
      worker.once('close', () => taker?.gone())
    },
    close() {
      clearInterval(looking)
      hand.close()
      void opening?.then((server) => server.close())
    },
  }
}

/** Nothing is read here: the first byte is for the worker. */
function open(host: string, port: number, backlog: number, arrived: (socket: Socket) => void): Promise<Server> {
  const server = createServer({ pauseOnConnect: true, noDelay: true, allowHalfOpen: true, ...noticeVanished })
  server.on('connection', (socket) => {
    // A caller that leaves before a worker has it.
    socket.on('error', () => {})
    arrived(socket)
  })
  return new Promise((resolve, reject) => {
    // It stays: a connection that cannot be accepted must not end this process.
    server.on('error', reject)
    server.listen({ host, port, backlog }, () => resolve(server))
  })
}
