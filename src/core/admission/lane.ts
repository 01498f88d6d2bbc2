/**
 * The rules of one lane, and nothing else: no clock, no I/O, no randomness. Events come in with their time,
 * decisions go out. The rules and their reasons stand in admission.md.
 */

/** The four controls of a lane (SPEC 8.4). */
export interface LaneLimits {
  readonly tokenBudget: number
  readonly maxConcurrentRequests: number
  readonly maxQueueDepth: number
  readonly maxWaitMs: number
}

export interface LaneStatus {
  readonly limits: LaneLimits
  readonly inFlightRequests: number
  readonly committedTokens: number
  readonly queueDepth: number
}

/** What becomes of an arrival. A caller that leaves first gets none. */
export type Decision =
  | { readonly kind: 'admitted'; readonly waitMs: number }
  | { readonly kind: 'queue_full' }
  | { readonly kind: 'overloaded' }
  | { readonly kind: 'too_large' }
  | { readonly kind: 'closed' }

const admittedAtOnce: Decision = Object.freeze({ kind: 'admitted', waitMs: 0 })
const queueFull: Decision = Object.freeze({ kind: 'queue_full' })
const overloaded: Decision = Object.freeze({ kind: 'overloaded' })
const tooLarge: Decision = Object.freeze({ kind: 'too_large' })
const closed: Decision = Object.freeze({ kind: 'closed' })

/** One request and where it stands: outside before it arrives and after it has ended. Only the lane writes here. */
export class Place {
  readonly cost: number
  state: 'outside' | 'queued' | 'in_flight' = 'outside'
  arrivedAtMs = 0
  ahead: Place | undefined = undefined
  behind: Place | undefined = undefined
  stretch: Stretch | undefined = undefined

  constructor(cost: number) {
    if (!Number.isSafeInteger(cost) || cost < 0) throw new RangeError(`cost must be a whole number of tokens: ${cost}`)
    this.cost = cost
  }
}

/**
 * Neighbours in the queue that arrived under the same maximum wait. Within a stretch the first is the first to
 * expire, so the earliest deadline is found by looking at one place per stretch: one, unless the limit has just changed.
 */
interface Stretch {
  readonly maxWaitMs: number
  first: Place
}

export interface Lane<P extends Place> {
  /** Decides at once, or returns undefined: the place is queued and `decide` will hear of it. */
  readonly arrive: (place: P, nowMs: number) => Decision | undefined
  /** Cancels a place that waits, releases one that is in flight; anything else is left as it is. */
  readonly leave: (place: P, nowMs: number) => void
  /** Lets time pass: due once `nextDeadlineMs` is reached. */
  readonly expire: (nowMs: number) => void
  readonly setLimits: (limits: LaneLimits, nowMs: number) => void
  /** Refuses whoever waits and whoever comes; whoever is in flight stays. */
  readonly close: () => void
  readonly status: () => LaneStatus
  /** When the next place expires; Infinity where none waits. */
  readonly nextDeadlineMs: () => number
}

/** Opens a lane. `decide` hears what becomes of places that had to wait; it must not call the lane back. */
export function openLane<P extends Place>(
  initialLimits: LaneLimits,
  decide: (place: P, decision: Decision) => void,
): Lane<P> {
  let limits = checked(initialLimits)
  let isClosed = false
  let inFlightRequests = 0
  let committedTokens = 0
  let queueDepth = 0
  let head: Place | undefined
  let tail: Place | undefined
  const stretches: Stretch[] = []

  const fits = (place: Place): boolean =>
    inFlightRequests < limits.maxConcurrentRequests && committedTokens + place.cost <= limits.tokenBudget

  function charge(place: Place): void {
    place.state = 'in_flight'
    inFlightRequests += 1
    committedTokens += place.cost
  }

  function release(place: Place): void {
    place.state = 'outside'
    inFlightRequests -= 1
    committedTokens -= place.cost
  }

  function enqueue(place: Place): void {
    place.state = 'queued'
    place.ahead = tail
    if (tail === undefined) head = place
    else tail.behind = place
    tail = place
    queueDepth += 1
    let stretch = stretches.at(-1)
    if (stretch?.maxWaitMs !== limits.maxWaitMs) {
      stretch = { maxWaitMs: limits.maxWaitMs, first: place }
      stretches.push(stretch)
    }
    place.stretch = stretch
  }

  function dequeue(place: Place): void {
    const { ahead, behind, stretch } = place
    if (ahead === undefined) head = behind
    else ahead.behind = behind
    if (behind === undefined) tail = ahead
    else behind.ahead = ahead
    queueDepth -= 1
    if (stretch?.first === place) {
      if (behind?.stretch === stretch) stretch.first = behind
      else stretches.splice(stretches.indexOf(stretch), 1)
    }
    place.ahead = place.behind = place.stretch = undefined
    place.state = 'outside'
  }

  function refuse(place: Place, decision: Decision): void {
    dequeue(place)
    decide(place as P, decision)
  }

  function earliestStretch(): Stretch | undefined {
    let earliest = stretches[0]
    for (const stretch of stretches) {
      if (earliest !== undefined && deadlineMs(stretch) < deadlineMs(earliest)) earliest = stretch
    }
    return earliest
  }

  function expireDue(nowMs: number): void {
    for (let due = earliestStretch(); due !== undefined && deadlineMs(due) <= nowMs; due = earliestStretch()) {
      refuse(due.first, overloaded)
    }
  }

  /** Strictly from the head: a head that does not fit holds back all behind it. */
  function pump(nowMs: number): void {
    while (head !== undefined) {
      const place = head
      if (place.cost > limits.tokenBudget) {
        refuse(place, tooLarge)
      } else if (fits(place)) {
        dequeue(place)
        charge(place)
        decide(place as P, { kind: 'admitted', waitMs: nowMs - place.arrivedAtMs })
      } else return
    }
  }

  /** Expiries come first: capacity that frees too late admits nobody beyond the maximum wait. */
  function settle(nowMs: number): void {
    if (head === undefined) return
    expireDue(nowMs)
    pump(nowMs)
  }

  return {
    arrive(place, nowMs) {
      if (place.state !== 'outside') throw new Error('a place is taken once')
      place.arrivedAtMs = nowMs
      settle(nowMs)
      if (isClosed) return closed
      if (place.cost > limits.tokenBudget) return tooLarge
      if (head === undefined && fits(place)) {
        charge(place)
        return admittedAtOnce
      }
      if (queueDepth >= limits.maxQueueDepth) return queueFull
      if (limits.maxWaitMs === 0) return overloaded
      enqueue(place)
      return undefined
    },
    leave(place, nowMs) {
      if (place.state === 'queued') dequeue(place)
      else if (place.state === 'in_flight') release(place)
      else return
      settle(nowMs)
    },
    expire: settle,
    setLimits(next, nowMs) {
      limits = checked(next)
      settle(nowMs)
    },
    close() {
      isClosed = true
      for (let place = head; place !== undefined; place = head) refuse(place, closed)
    },
    status: () => ({ limits, inFlightRequests, committedTokens, queueDepth }),
    nextDeadlineMs() {
      const earliest = earliestStretch()
      return earliest === undefined ? Infinity : deadlineMs(earliest)
    },
  }
}

/** Fixed on arrival: a changed maximum wait is for those who come after. */
function deadlineMs(stretch: Stretch): number {
  return stretch.first.arrivedAtMs + stretch.maxWaitMs
}

function checked(limits: LaneLimits): LaneLimits {
  const { tokenBudget, maxConcurrentRequests, maxQueueDepth, maxWaitMs } = limits
  for (const limit of [tokenBudget, maxConcurrentRequests, maxQueueDepth, maxWaitMs]) {
    if (!Number.isSafeInteger(limit) || limit < 0) throw new RangeError(`a limit must be a whole number ≥ 0: ${limit}`)
  }
  return limits
}
