import { ApiError, CallerLeft } from './errors.ts'

/** The client of a piece of work. Work that has not begun is dropped when its client disconnects. */
export interface TurnClient {
  readonly owner: string
  readonly isGone: boolean
  /** Returns a function that removes the listener. */
  onGone(listener: () => void): () => void
}

export interface TurnLimits {
  /** How much work runs at once. One owner has half of it, if it is more than one. */
  readonly atOnce: number
  /** How much work may wait. */
  readonly maxWaiting: number
  readonly maxWaitingOfOwner: number
  /** Messages for callers that are refused. */
  readonly full: string
  readonly ownerFull: string
}

/** Runs a few pieces of work at a time. Owners take turns; within an owner, the oldest work goes first. */
export interface Turns {
  /**
   * Rejects with CallerLeft if the client disconnects before its work has begun, and with a refusal if too much is
   * waiting.
   */
  run<Result>(client: TurnClient, work: () => Promise<Result>): Promise<Result>
}

interface Waiting {
  begin(): void
}

export function takeTurns({ atOnce, maxWaiting, maxWaitingOfOwner, full, ownerFull }: TurnLimits): Turns {
  const atOnceOfOwner = Math.ceil(atOnce / 2)
  /** The waiting work. The owner whose last turn ended longest ago is first. */
  const owners = new Map<string, Waiting[]>()
  /** How much work of each owner is running. */
  const working = new Map<string, number>()
  let count = 0

  function mayBegin(owner: string): boolean {
    const all = working.values().reduce((sum, it) => sum + it, 0)
    return all < atOnce && (working.get(owner) ?? 0) < atOnceOfOwner
  }

  function begun(owner: string, change: 1 | -1): void {
    const left = (working.get(owner) ?? 0) + change
    if (left === 0) working.delete(owner)
    else working.set(owner, left)
  }

  /** Resolves when it is the client's turn. */
  function turn(client: TurnClient): Promise<void> {
    const { owner } = client
    const own = owners.get(owner) ?? []
    if (own.length >= maxWaitingOfOwner) throw new ApiError('service_unavailable', ownerFull)
    if (count >= maxWaiting) throw new ApiError('service_unavailable', full)
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        begin() {
          forget()
          resolve()
        },
      }
      own.push(waiting)
      owners.set(owner, own)
      count++
      const forget = client.onGone(() => {
        remove(owner, waiting)
        reject(new CallerLeft())
      })
    })
  }

  function remove(owner: string, waiting: Waiting): void {
    keep(owner, owners.get(owner)?.filter((it) => it !== waiting) ?? [])
    count--
  }

  function keep(owner: string, waiting: Waiting[]): void {
    if (waiting.length === 0) owners.delete(owner)
    else owners.set(owner, waiting)
  }

  function beginNext(last: string): void {
    begun(last, -1)
    const more = owners.get(last) ?? []
    owners.delete(last)
    keep(last, more)
    const next = owners.entries().find(([owner]) => mayBegin(owner))
    if (!next) return
    const [owner, [oldest, ...others]] = next
    keep(owner, others)
    count--
    begun(owner, 1)
    oldest?.begin()
  }

  return {
    async run(client, work) {
      if (client.isGone) throw new CallerLeft()
      if (mayBegin(client.owner)) begun(client.owner, 1)
      else await turn(client)
      try {
        return await work()
      } finally {
        beginNext(client.owner)
      }
    },
  }
}
