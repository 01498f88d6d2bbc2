/**
 * Hands connections out to workers, so that each has as many open ones as any other. A worker is offered one connection at a
 * time, and must say that it has taken it. Until then the connection is kept, and goes to another worker if this one ends.
 * docs/decisions/2026-11-16-workers.md says why.
 */
export interface HandOut<Connection> {
  arrived(connection: Connection): void
  /** A worker takes connections from now on. */
  join(offer: Offer<Connection>): Taker
  /** To be called again and again: finds workers that stand still. */
  look(nowMs: number): void
  /** Gives up every connection that no worker has taken. */
  close(): void
}

export interface Taker {
  taken(offer: number, open: number): void
  refused(offer: number): void
  /** How many connections it has. */
  has(open: number): void
  /** It takes no more. What it is being offered, it may still take. */
  leave(): void
  /** Its process has ended. */
  gone(): void
}

export interface HandOutOptions<Connection> {
  /** A worker has it, or nobody can have it: it is no longer needed here. */
  drop(connection: Connection): void
  now(): number
  /** How many connections may wait until a worker has taken them. */
  readonly maxWaiting: number
  /** A worker that has not answered for so long gets nothing else. */
  readonly silentMs: number
}

type Offer<Connection> = (number: number, connection: Connection) => void

interface Worker<Connection> {
  readonly offer: Offer<Connection>
  open: number
  /** Meant for it, and not yet offered. */
  next: Connection[]
  offered: { readonly number: number; readonly connection: Connection; atMs: number; againInMs: number } | undefined
  isSilent: boolean
  isLeaving: boolean
}

export function handOut<Connection>(options: HandOutOptions<Connection>): HandOut<Connection> {
  const { drop, now, maxWaiting, silentMs } = options
  /** Those that may get connections. Whoever got the last one is at the end. */
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

  /** It is not known what became of an offer that was not answered, so that one stays. */
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

  function join(offer: Offer<Connection>): Taker {
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

    /** The connection of an offer that it has answered. */
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
    look(nowMs) {
      for (const worker of workers.slice()) {
        const { offered } = worker
        if (!offered || nowMs - offered.atMs < offered.againInMs) continue
        worker.isSilent = true
        takeBack(worker)
        // The offer may not have reached it, if it had too many files open. It takes the same one only once.
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
