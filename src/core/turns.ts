import { ApiError, CallerLeft } from './errors.ts'

/** Whom work is for. Work that has not begun is dropped when its client goes. */
export interface TurnClient {
  readonly owner: string
  readonly isGone: boolean
  /** Returns a function that takes the listener back. */
  onGone(listener: () => void): () => void
}

export interface TurnLimits {
  /** How much work may wait. */
  readonly maxWaiting: number
  readonly maxWaitingOfOwner: number
  /** Messages for callers that are refused. */
  readonly full: string
  readonly ownerFull: string
}

/** Does one piece of work at a time. Owners take turns; within an owner, the oldest work goes first. */
export interface Turns {
  /** Rejects with CallerLeft if the client goes before its work has begun, and with a refusal if too much waits. */
  run<Result>(client: TurnClient, work: () => Promise<Result>): Promise<Result>
}

interface Waiting {
  begin(): void
}

export function takeTurns({ maxWaiting, maxWaitingOfOwner, full, ownerFull }: TurnLimits): Turns {
  /** The work that waits. The owner whose last turn ended longest ago is the first. */
  const owners = new Map<string, Waiting[]>()
  let isWorking = false
  let count = 0

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
    const more = owners.get(last) ?? []
    owners.delete(last)
    keep(last, more)
    const [next] = owners
    isWorking = next !== undefined
    if (!next) return
    const [owner, [oldest, ...others]] = next
    keep(owner, others)
    count--
    oldest?.begin()
  }

  return {
    async run(client, work) {
      if (client.isGone) throw new CallerLeft()
      if (isWorking) await turn(client)
      isWorking = true
      try {
        return await work()
      } finally {
        beginNext(client.owner)
      }
    },
  }
}
