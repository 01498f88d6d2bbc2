/**
 * Distributes connections over workers, so that all have about the same number open. A worker is offered one connection at
 * a time, and must confirm that it has taken it. Until then the connection is kept, and goes to another worker if this one
 * ends. See docs/decisions/2026-11-16-workers.md for the reasons.
 */
export interface ConnectionBalancer<Connection> {
  arrived(connection: Connection): void
  /** Adds a worker that takes connections. */
  join(offer: Offer<Connection>): WorkerHandle
  /** Finds workers that do not respond. Call it periodically. */
  sweep(nowMs: number): void
  /** Drops every connection that no worker has taken. */
  close(): void
}

export interface WorkerHandle {
  taken(offer: number, open: number): void
  refused(offer: number): void
  /** Updates the number of connections that the worker has open. */
  has(open: number): void
  /** The worker takes no more connections, except possibly the current offer. */
  leave(): void
  /** The worker's process has ended. */
  gone(): void
}

export interface ConnectionBalancerOptions<Connection> {
  /** Closes this process's handle of a connection, because a worker has it or none can take it. */
  drop(connection: Connection): void
  now(): number
  /** How many connections may wait for a worker. */
  readonly maxWaiting: number
  /** A worker that has not answered an offer for this long gets no other connections. */
  readonly silentMs: number
}

type Offer<Connection> = (number: number, connection: Connection) => void

interface Worker<Connection> {
  readonly offer: Offer<Connection>
  open: number
  /** Assigned to it, but not yet offered. */
  next: Connection[]
  offered: { readonly number: number; readonly connection: Connection; atMs: number; againInMs: number } | undefined
  isSilent: boolean
  isLeaving: boolean
}

export function connectionBalancer<Connection>(
  options: ConnectionBalancerOptions<Connection>,
): ConnectionBalancer<Connection> {
  const { drop, now, maxWaiting, silentMs } = options
  /** The workers that may get connections, least recently used first. */
  const workers: Worker<Connection>[] = []
  let waiting: Connection[] = []
  let offers = 0
  let isClosed = false

  function place(connection: Connection): void {
    const worker = leastBusy()
    if (isClosed) drop(connection)
    else if (!worker) waiting.push(connection)
    else {
      workers.push(...workers.splice(workers.indexOf(worker), 1))
      worker.next.push(connection)
      offerNext(worker)
    }
  }

  function leastBusy(): Worker<Connection> | undefined {
    let least: Worker<Connection> | undefined
    for (const worker of workers) if (!worker.isSilent && (!least || load(worker) < load(least))) least = worker
    return least
  }

  function offerNext(worker: Worker<Connection>): void {
    if (worker.offered || worker.next.length === 0) return
    const connection = worker.next.shift() as Connection
    worker.offered = { number: ++offers, connection, atMs: now(), againInMs: silentMs }
    worker.offer(offers, connection)
  }

  /** Reassigns what was not offered yet. An unanswered offer stays, because its outcome is unknown. */
  function takeBack(worker: Worker<Connection>): void {
    const connections = worker.next
    worker.next = []
    connections.forEach(place)
  }

  function placeWaiting(): void {
    const connections = waiting
    waiting = []
    connections.forEach(place)
  }

  function join(offer: Offer<Connection>): WorkerHandle {
    const worker: Worker<Connection> = {
      offer,
      open: 0,
      next: [],
      offered: undefined,
      isSilent: false,
      isLeaving: false,
    }
    workers.push(worker)
    placeWaiting()

    /** The connection of the offer that the worker has answered. */
    function answered(number: number): Connection | undefined {
      if (worker.offered?.number !== number) return undefined
      const { connection } = worker.offered
      worker.offered = undefined
      worker.isSilent = false
      return connection
    }

    function leave(): void {
      if (worker.isLeaving) return
      worker.isLeaving = true
      workers.splice(workers.indexOf(worker), 1)
      takeBack(worker)
    }

    return {
      taken(number, open) {
        const connection = answered(number)
        worker.open = open
        if (connection !== undefined) drop(connection)
        offerNext(worker)
        placeWaiting()
      },
      refused(number) {
        const connection = answered(number)
        if (connection !== undefined) place(connection)
      },
      has: (open) => void (worker.open = open),
      leave,
      gone() {
        leave()
        const connection = worker.offered && answered(worker.offered.number)
        if (connection !== undefined) place(connection)
      },
    }
  }

  return {
    arrived(connection) {
      const waits = workers.reduce((sum, { next }) => sum + next.length, waiting.length)
      if (waits < maxWaiting) place(connection)
      else drop(connection)
    },
    join,
    sweep(nowMs) {
      for (const worker of workers.slice()) {
        const { offered } = worker
        if (!offered || nowMs - offered.atMs < offered.againInMs) continue
        worker.isSilent = true
        takeBack(worker)
        // The offer may have been lost, if the worker had too many open files. A worker accepts the same offer only once.
        offered.atMs = nowMs
        offered.againInMs *= 2
        worker.offer(offered.number, offered.connection)
      }
    },
    close() {
      isClosed = true
      for (const worker of workers) takeBack(worker)
      placeWaiting()
    },
  }
}

function load({ open, next, offered }: Omit<Worker<unknown>, 'offer'>): number {
  return open + next.length + (offered ? 1 : 0)
}
