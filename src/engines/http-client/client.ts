import { MAX_IDLE_MS, headerLines, requestHead } from './message-head.ts'
import { Connection, type ConnectionPool } from './connection.ts'
import { deadlines } from './deadlines.ts'
import { isTraced, TracedRequest } from './diagnostics.ts'
import type { AnswerHandler, ClientRequest, RequestTaker, ServerPlace } from './request.ts'

/** The connections to one server. */
export interface Client {
  /** Throws a TypeError if the path cannot be sent. Everything else is reported to the handler. */
  send(request: ClientRequest, handler: AnswerHandler): Sending
  /** Resolves when the running requests have ended. */
  close(): Promise<void>
}

/** A request that was submitted. It may still wait for its connection. */
export interface Sending {
  /** Ends the request with this error, and its connection. */
  abort(cause: Error): void
  pause(): void
  resume(): void
}

/**
 * Opens as many connections as there are concurrent requests. The one that became idle last is used first, because the
 * server is least likely to close it at the same moment. `idleTimeoutMs`: how long a server that has begun to answer
 * may send nothing.
 */
export function openClient(place: ServerPlace, idleTimeoutMs: number): Client {
  const all = new Set<Connection>()
  const idle: Connection[] = []
  const idleEnds = deadlines(MAX_IDLE_MS)
  const commonLines = headerLines({ host: new URL(place.origin).host, connection: 'keep-alive' })
  let onEmpty: (() => void) | undefined

  const owner: ConnectionPool = {
    free(connection) {
      if (onEmpty) return connection.close()
      idle.push(connection)
      connection.cancelIdle = idleEnds.set(() => connection.close())
    },
    gone(connection) {
      if (!all.delete(connection)) return
      connection.cancelIdle?.()
      const index = idle.indexOf(connection)
      if (index >= 0) idle.splice(index, 1)
      if (all.size === 0) onEmpty?.()
    },
  }

  function connect(): Connection {
    const connection = new Connection(place, idleTimeoutMs, owner)
    all.add(connection)
    return connection
  }

  return {
    send({ method, path, lines, body }, handler) {
      let allLines = body ? `${commonLines}${lines}content-length: ${body.length}\r\n` : commonLines + lines
      let taker: RequestTaker = handler
      if (isTraced()) {
        const traced = new TracedRequest(place.origin, method, path, allLines, handler)
        allLines += traced.addedLines
        taker = traced
      }
      const head = requestHead(method, path, allLines)
      const connection = idle.pop() ?? connect()
      connection.cancelIdle?.()
      connection.send({ head, body }, taker)
      return connection
    },
    async close() {
      if (all.size === 0) return
      const empty = new Promise<void>((resolve) => (onEmpty = resolve))
      for (const connection of idle.splice(0)) connection.close()
      await empty
    },
  }
}
