import type { ChildProcess } from 'node:child_process'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { keepAliveOptions } from './port.ts'
import { connectionBalancer, type WorkerHandle } from './connection-balancer.ts'
import type { FromWorker, ListenFailure, ToWorker } from './messages.ts'

/** The port of all workers. It opens when the first worker asks for it, and stays open when workers end. */
export interface SharedPort {
  /** Passes connections to this worker, from when it asks for the port until it leaves or ends. */
  serve(worker: ChildProcess): void
  close(): void
}

/**
 * A healthy worker answers within milliseconds. On an overloaded machine it may take longer, above all while it starts, and
 * would then have fewer connections than the others for as long as those stay open.
 */
const SILENT_MS = 3000
/** Connections that no worker has taken yet; each takes a few milliseconds. */
const WAITING_MAX = 16_384

export function sharedPort(silentMs = SILENT_MS): SharedPort {
  const balancer = connectionBalancer<Socket>({
    drop: (socket) => void socket.destroy(),
    now: () => performance.now(),
    maxWaiting: WAITING_MAX,
    silentMs,
  })
  const sweeping = setInterval(() => balancer.sweep(performance.now()), silentMs).unref()
  let opening: Promise<Server> | undefined

  return {
    serve(worker) {
      let handle: WorkerHandle | undefined
      // Ignores errors: the worker may just have ended.
      const send = (message: ToWorker, socket?: Socket): void =>
        void worker.send(message, socket, { keepOpen: true }, () => {})

      async function listen(host: string, port: number, backlog: number): Promise<void> {
        try {
          const server = await (opening ??= open(host, port, backlog, (socket) => balancer.arrived(socket)))
          send({ kind: 'listening', port: (server.address() as AddressInfo).port })
          if (worker.connected) handle = balancer.join((offer, socket) => send({ kind: 'offer', offer }, socket))
        } catch (error) {
          opening = undefined
          const { message, code, syscall, address, port } = error as Error & ListenFailure
          send({ kind: 'not listening', message, cause: { code, syscall, address, port } })
        }
      }

      worker.on('message', (message: FromWorker) => {
        switch (message.kind) {
          case 'listen':
            void listen(message.host, message.port, message.backlog)
            break
          case 'taken':
            handle?.taken(message.offer, message.open)
            break
          case 'refused':
            handle?.refused(message.offer)
            break
          case 'open':
            handle?.has(message.open)
            break
          case 'leaving':
            handle?.leave()
            break
          case 'running':
          // supervise.ts handles this message.
        }
      })
      // Unlike 'exit', 'close' comes after the worker's last message. Unlike 'disconnect', it comes even while an offer is in flight.
      worker.once('close', () => handle?.gone())
    },
    close() {
      clearInterval(sweeping)
      balancer.close()
      void opening?.then((server) => server.close())
    },
  }
}

/** Reads nothing from connections: the worker must get the first byte. */
function open(host: string, port: number, backlog: number, arrived: (socket: Socket) => void): Promise<Server> {
  const server = createServer({ pauseOnConnect: true, noDelay: true, allowHalfOpen: true, ...keepAliveOptions })
  server.on('connection', (socket) => {
    // A client may disconnect before a worker has the connection.
    socket.on('error', () => {})
    arrived(socket)
  })
  return new Promise((resolve, reject) => {
    // The listener stays after startup: a connection that cannot be accepted must not end this process.
    server.on('error', reject)
    server.listen({ host, port, backlog }, () => resolve(server))
  })
}
