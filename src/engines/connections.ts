import { MAX_IDLE_MS } from './answer-head.ts'
import {
  Connection,
  type AnswerHandler,
  type ConnectionOwner,
  type SentRequest,
  type ServerPlace,
} from './connection.ts'
import { deadlines } from './deadlines.ts'

/** The connections to one server. */
export interface Connections {
  send(request: SentRequest, handler: AnswerHandler): Sending
  /** Resolves when the requests that run have ended. */
  close(): Promise<void>
}

/** A request that was handed over. It may still wait for its connection. */
export interface Sending {
  /** Ends the request with this error, and its connection. */
  abort(cause: Error): void
  pause(): void
  resume(): void
}

/**
 * As many connections as there are requests at a time. The one that became free last is used first, because the server
 * is least likely to close it at the same moment.
 */
export function openConnections(place: ServerPlace, idleTimeoutMs: number): Connections {
  const all = new Set<Connection>()
  const idle: Connection[] = []
  const idleEnds = deadlines(MAX_IDLE_MS)
  let onEmpty: (() => void) | undefined

  const owner: ConnectionOwner = {
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
    send(request, handler) {
      const connection = idle.pop() ?? connect()
      connection.cancelIdle?.()
      connection.send(request, handler)
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
