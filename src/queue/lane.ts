/**
 * The rules of one lane and nothing else: no clock, no I/O, no randomness. The driver passes the
 * time with each event and receives the decisions. design.md explains the rules.
 */

/** The controls of a lane. */
export interface LaneLimits {
  readonly tokenBudget: number
  readonly maxConcurrentRequests: number
  readonly maxQueueDepth: number
  readonly maxWaitMs: number
  /** How many requests one workspace may have in the lane, waiting and in flight together. Undefined: as many as fit. */
  readonly maxRequestsPerWorkspace?: number | undefined
}

export interface LaneStatus {
  readonly limits: LaneLimits
  readonly inFlightRequests: number
  readonly committedTokens: number
  readonly queueDepth: number
}

/** The outcome of an arrival. A caller that leaves first never gets a decision. */
export type LaneDecision =
  | { readonly kind: 'admitted'; readonly waitMs: number }
  | { readonly kind: 'queue_full' }
  | { readonly kind: 'workspace_queue_full' }
  | { readonly kind: 'overloaded' }
  | { readonly kind: 'too_large' }
  | { readonly kind: 'closed' }

const admittedAtOnce: LaneDecision = Object.freeze({ kind: 'admitted', waitMs: 0 })
const queueFull: LaneDecision = Object.freeze({ kind: 'queue_full' })
const workspaceQueueFull: LaneDecision = Object.freeze({ kind: 'workspace_queue_full' })
const overloaded: LaneDecision = Object.freeze({ kind: 'overloaded' })
const tooLarge: LaneDecision = Object.freeze({ kind: 'too_large' })
const closed: LaneDecision = Object.freeze({ kind: 'closed' })

/** One request's place in the lane: outside before it arrives and after it has ended. Only the lane writes here. */
export class Place {
  readonly cost: number
  /** The limit for one workspace counts requests by this name. */
  readonly workspace: string
  state: 'outside' | 'queued' | 'in_flight' = 'outside'
  arrivedAtMs = 0
  ahead: Place | undefined = undefined
  behind: Place | undefined = undefined
  deadlineGroup: DeadlineGroup | undefined = undefined

  constructor(cost: number, workspace: string) {
    if (!Number.isSafeInteger(cost) || cost < 0) throw new RangeError(`cost must be a whole number of tokens: ${cost}`)
    this.cost = cost
    this.workspace = workspace
  }
}

/**
 * Neighbours in the queue that arrived under the same maximum wait. The first of a group is the first to expire, so
 * the earliest deadline is found by looking at one place per group. There is one group unless the limit has just changed.
 */
interface DeadlineGroup {
  readonly maxWaitMs: number
  first: Place
}

export interface Lane<P extends Place> {
  /** Decides at once, or queues the place and returns undefined; `decide` is called later. */
  readonly arrive: (place: P, nowMs: number) => LaneDecision | undefined
  /** Cancels a place that waits, releases one that is in flight, and ignores any other. */
  readonly leave: (place: P, nowMs: number) => void
  /** Refuses every place that has waited too long. Call it once `nextDeadlineMs` is reached. */
  readonly expire: (nowMs: number) => void
  readonly setLimits: (limits: LaneLimits, nowMs: number) => void
  /** Refuses all places that wait and all later arrivals; requests in flight stay. */
  readonly close: () => void
  readonly status: () => LaneStatus
  /** The arrival time of the place that has waited longest; undefined when the queue is empty. */
  readonly oldestArrivalMs: () => number | undefined
  /** When the next place expires; Infinity when the queue is empty. */
  readonly nextDeadlineMs: () => number
}

/** Opens a lane. `decide` gets the decisions for places that had to wait; it must not call the lane back. */
export function openLane<P extends Place>(
  initialLimits: LaneLimits,
  decide: (place: P, decision: LaneDecision) => void,
): Lane<P> {
  let limits = checked(initialLimits)
  let isClosed = false
  let inFlightRequests = 0
  let committedTokens = 0
  let queueDepth = 0
  let head: Place | undefined
  let tail: Place | undefined
  const deadlineGroups: DeadlineGroup[] = []
  /** How many places each workspace has in the lane. Kept without a limit too, so that a new limit counts all requests. */
  const placesOf = new Map<string, number>()

  const fits = (place: Place): boolean =>
    inFlightRequests < limits.maxConcurrentRequests && committedTokens + place.cost <= limits.tokenBudget

  const isWorkspaceFull = ({ workspace }: Place): boolean =>
    (placesOf.get(workspace) ?? 0) >= (limits.maxRequestsPerWorkspace ?? Infinity)

  function joined({ workspace }: Place): void {
    placesOf.set(workspace, (placesOf.get(workspace) ?? 0) + 1)
  }

  function left({ workspace }: Place): void {
    const places = (placesOf.get(workspace) ?? 0) - 1
    if (places > 0) placesOf.set(workspace, places)
    else placesOf.delete(workspace)
  }

  function charge(place: Place): void {
    joined(place)
    place.state = 'in_flight'
    inFlightRequests += 1
    committedTokens += place.cost
  }

  function release(place: Place): void {
    left(place)
    place.state = 'outside'
    inFlightRequests -= 1
    committedTokens -= place.cost
  }

  function enqueue(place: Place): void {
    joined(place)
    place.state = 'queued'
    place.ahead = tail
    if (tail === undefined) head = place
    else tail.behind = place
    tail = place
    queueDepth += 1
    let group = deadlineGroups.at(-1)
    if (group?.maxWaitMs !== limits.maxWaitMs) {
      group = { maxWaitMs: limits.maxWaitMs, first: place }
      deadlineGroups.push(group)
    }
    place.deadlineGroup = group
  }

  function dequeue(place: Place): void {
    left(place)
    const { ahead, behind, deadlineGroup: group } = place
    if (ahead === undefined) head = behind
    else ahead.behind = behind
    if (behind === undefined) tail = ahead
    else behind.ahead = ahead
    queueDepth -= 1
    if (group?.first === place) {
      if (behind?.deadlineGroup === group) group.first = behind
      else deadlineGroups.splice(deadlineGroups.indexOf(group), 1)
    }
    place.ahead = place.behind = place.deadlineGroup = undefined
    place.state = 'outside'
  }

  function refuse(place: Place, decision: LaneDecision): void {
    dequeue(place)
    decide(place as P, decision)
  }

  function earliestGroup(): DeadlineGroup | undefined {
    let earliest = deadlineGroups[0]
    for (const group of deadlineGroups) {
      if (earliest !== undefined && deadlineMs(group) < deadlineMs(earliest)) earliest = group
    }
    return earliest
  }

  function expireDue(nowMs: number): void {
    for (let due = earliestGroup(); due !== undefined && deadlineMs(due) <= nowMs; due = earliestGroup()) {
      refuse(due.first, overloaded)
    }
  }

  /** Admits strictly from the head: a head that does not fit holds back the whole queue. */
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

  /** Expires first, so that capacity freed too late does not admit a place that has waited beyond the maximum. */
  function settle(nowMs: number): void {
    if (head === undefined) return
    expireDue(nowMs)
    pump(nowMs)
  }

  return {
    arrive(place, nowMs) {
      if (place.state !== 'outside') throw new Error('a place can arrive only while it is outside the lane')
      place.arrivedAtMs = nowMs
      settle(nowMs)
      if (isClosed) return closed
      if (place.cost > limits.tokenBudget) return tooLarge
      if (isWorkspaceFull(place)) return workspaceQueueFull
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
    oldestArrivalMs: () => head?.arrivedAtMs,
    nextDeadlineMs() {
      const earliest = earliestGroup()
      return earliest === undefined ? Infinity : deadlineMs(earliest)
    },
  }
}

/** Fixed on arrival: a changed maximum wait applies only to later arrivals. */
function deadlineMs(group: DeadlineGroup): number {
  return group.first.arrivedAtMs + group.maxWaitMs
}

function checked(limits: LaneLimits): LaneLimits {
  const { tokenBudget, maxConcurrentRequests, maxQueueDepth, maxWaitMs, maxRequestsPerWorkspace = 0 } = limits
  for (const limit of [tokenBudget, maxConcurrentRequests, maxQueueDepth, maxWaitMs, maxRequestsPerWorkspace]) {
    if (!Number.isSafeInteger(limit) || limit < 0) throw new RangeError(`a limit must be a whole number ≥ 0: ${limit}`)
  }
  return limits
}
