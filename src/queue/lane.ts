/**
 * The rules of one lane and nothing else: no clock, no I/O, no randomness. The driver passes the
 * time with each event and receives the decisions. design.md explains the rules.
 */

import {
  BatchPlaces,
  batchLimitsOf,
  type BatchPlace,
  type BatchStatus,
  type Capacity,
  type CapacityLimits,
} from './batch-places.ts'

/** Online places come first. Batch places, which are lines of batches and flex requests, get what online places leave idle. */
export type Tier = 'online' | 'batch'

/** The controls of a lane. */
export interface LaneLimits extends CapacityLimits {
  readonly maxWaitMs: number
  /** How many requests one workspace may have in the lane, waiting and in flight together. Undefined: as many as fit. */
  readonly maxRequestsPerWorkspace?: number | undefined
  /** How long a flex request may wait for idle capacity. By default ten minutes. The lane does not read it: each place has its own. */
  readonly maxFlexWaitMs?: number | undefined
}

export function maxFlexWaitOf({ maxFlexWaitMs = 600_000 }: LaneLimits): number {
  return maxFlexWaitMs
}

export interface LaneStatus {
  readonly limits: LaneLimits
  /** Of both tiers. */
  readonly inFlightRequests: number
  /** Of both tiers. */
  readonly committedTokens: number
  /** Online places that wait. */
  readonly queueDepth: number
  readonly batch: BatchStatus
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
export class Place implements BatchPlace<Place> {
  readonly cost: number
  /** The limit for one workspace counts online requests by this name. Batch places of different workspaces take turns. */
  readonly workspace: string
  readonly tier: Tier
  /** How long a batch place may wait. The limits of the lane say how long an online place may. */
  readonly maxWaitMs: number
  state: 'outside' | 'queued' | 'in_flight' = 'outside'
  arrivedAtMs = 0
  ahead: Place | undefined = undefined
  behind: Place | undefined = undefined
  deadlineGroup: DeadlineGroup | undefined = undefined
  mark: 'none' | 'preemptible' | 'preempted' = 'none'
  isCovered = false
  dueAtMs = Infinity
  dueIndex = 0

  constructor(cost: number, workspace: string, tier: Tier = 'online', maxWaitMs = Infinity) {
    if (!Number.isSafeInteger(cost) || cost < 0) throw new RangeError(`cost must be a whole number of tokens: ${cost}`)
    this.cost = cost
    this.workspace = workspace
    this.tier = tier
    this.maxWaitMs = maxWaitMs
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

/** Online places that wait, in the order of arrival. */
class OnlineQueue {
  head: Place | undefined = undefined
  tail: Place | undefined = undefined
  depth = 0
  readonly #groups: DeadlineGroup[] = []

  add(place: Place, maxWaitMs: number): void {
    place.ahead = this.tail
    if (this.tail === undefined) this.head = place
    else this.tail.behind = place
    this.tail = place
    this.depth += 1
    let group = this.#groups.at(-1)
    if (group?.maxWaitMs !== maxWaitMs) {
      group = { maxWaitMs, first: place }
      this.#groups.push(group)
    }
    place.deadlineGroup = group
  }

  remove(place: Place): void {
    const { ahead, behind, deadlineGroup: group } = place
    if (ahead === undefined) this.head = behind
    else ahead.behind = behind
    if (behind === undefined) this.tail = ahead
    else behind.ahead = ahead
    this.depth -= 1
    if (group?.first === place) {
      if (behind?.deadlineGroup === group) group.first = behind
      else this.#groups.splice(this.#groups.indexOf(group), 1)
    }
    place.ahead = place.behind = place.deadlineGroup = undefined
  }

  /** The group whose first place expires first. */
  earliest(): DeadlineGroup | undefined {
    let earliest = this.#groups[0]
    for (const group of this.#groups) {
      if (earliest !== undefined && deadlineMs(group) < deadlineMs(earliest)) earliest = group
    }
    return earliest
  }
}

/** How many online places each workspace has. Kept without a limit too, so that a new limit counts all requests. */
class WorkspaceCounts {
  readonly #places = new Map<string, number>()

  placesOf({ workspace }: Place): number {
    return this.#places.get(workspace) ?? 0
  }

  joined(place: Place): void {
    this.#places.set(place.workspace, this.placesOf(place) + 1)
  }

  left(place: Place): void {
    const places = this.placesOf(place) - 1
    if (places > 0) this.#places.set(place.workspace, places)
    else this.#places.delete(place.workspace)
  }
}

export interface Lane<P extends Place> {
  /** Decides at once, or queues the place and returns undefined; `decide` is called later. */
  readonly arrive: (place: P, nowMs: number) => LaneDecision | undefined
  /** Cancels a place that waits, releases one that is in flight, and ignores any other. */
  readonly leave: (place: P, nowMs: number) => void
  /** From now on a batch place in flight is not preempted. False if it is too late for that. */
  readonly keep: (place: P) => boolean
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

/**
 * Opens a lane. `decide` gets the decisions for places that had to wait. `preempt` gets batch places in flight whose engine call
 * is to be aborted; they leave when it has ended. Neither may call the lane back. A lane without batch places needs no `preempt`.
 */
export function openLane<P extends Place>(
  initialLimits: LaneLimits,
  decide: (place: P, decision: LaneDecision) => void,
  preempt: (place: P) => void = () => {},
): Lane<P> {
  let limits = checked(initialLimits)
  const batch = new BatchPlaces<Place>(limits)
  let isClosed = false
  let inFlightRequests = 0
  let committedTokens = 0
  const queue = new OnlineQueue()
  const workspaces = new WorkspaceCounts()

  const fits = (place: Place): boolean =>
    inFlightRequests < limits.maxConcurrentRequests && committedTokens + place.cost <= limits.tokenBudget

  /** Batch places are admitted only while no online place waits, and none in a lane where online places may not wait for them. */
  const fitsAsBatch = (place: Place): boolean =>
    queue.head === undefined && limits.maxWaitMs > 0 && batch.hasRoomFor(place, inFlightRequests, committedTokens)

  const free = (): Capacity => ({
    requests: limits.maxConcurrentRequests - inFlightRequests,
    tokens: limits.tokenBudget - committedTokens,
  })

  const isWorkspaceFull = (place: Place): boolean =>
    workspaces.placesOf(place) >= (limits.maxRequestsPerWorkspace ?? Infinity)

  /** A place that waits only for batch places to give way does not count: without them it would not wait. */
  const isQueueFull = (place: Place): boolean =>
    queue.depth - batch.preemption.coveredRequests >= limits.maxQueueDepth &&
    !(batch.requests > 0 && batch.preemption.wouldCover(place, queue.tail, free(), batch.limits.preempt))

  function charge(place: Place): void {
    if (place.tier === 'batch') batch.charge(place)
    else workspaces.joined(place)
    place.state = 'in_flight'
    inFlightRequests += 1
    committedTokens += place.cost
  }

  function release(place: Place): void {
    if (place.tier === 'batch') batch.release(place)
    else workspaces.left(place)
    place.state = 'outside'
    inFlightRequests -= 1
    committedTokens -= place.cost
  }

  function enqueue(place: Place): void {
    workspaces.joined(place)
    place.state = 'queued'
    queue.add(place, limits.maxWaitMs)
  }

  function dequeue(place: Place): void {
    batch.preemption.uncover(place)
    workspaces.left(place)
    queue.remove(place)
    place.state = 'outside'
  }

  function cancel(place: Place): void {
    if (place.tier === 'online') return dequeue(place)
    batch.queue.remove(place)
    place.state = 'outside'
  }

  function refuse(place: Place, decision: LaneDecision): void {
    cancel(place)
    decide(place as P, decision)
  }

  function admit(place: Place, nowMs: number): void {
    charge(place)
    decide(place as P, { kind: 'admitted', waitMs: nowMs - place.arrivedAtMs })
  }

  /** Online requests run no code of batches while no line waits. */
  const earliestLine = () => (batch.queue.depth > 0 ? batch.queue.earliest() : undefined)

  function expireDue(nowMs: number): void {
    for (let due = queue.earliest(); due !== undefined && deadlineMs(due) <= nowMs; due = queue.earliest()) {
      refuse(due.first, overloaded)
    }
    for (let due = earliestLine(); due !== undefined && due.dueAtMs <= nowMs; due = earliestLine()) {
      refuse(due, overloaded)
    }
  }

  /** Admits strictly from the head: a head that does not fit holds back the whole queue. */
  function pump(nowMs: number): void {
    while (queue.head !== undefined) {
      const place = queue.head
      if (place.cost > limits.tokenBudget) {
        refuse(place, tooLarge)
      } else if (fits(place)) {
        dequeue(place)
        admit(place, nowMs)
      } else return
    }
  }

  /** Makes batch places give way to the online places that wait. */
  function makeWay(): void {
    if (queue.head === undefined || batch.requests === 0) return
    batch.preemption.cover(queue.head, free(), batch.limits.preempt, preempt as (place: Place) => void)
  }

  /** Admits the place whose turn it is. One that does not fit holds back all others. */
  function pumpBatch(nowMs: number): void {
    for (let place = batch.queue.head(); place !== undefined; place = batch.queue.head()) {
      if (batch.isTooLarge(place)) {
        refuse(place, tooLarge)
      } else if (fitsAsBatch(place)) {
        batch.queue.take(place)
        admit(place, nowMs)
      } else return
    }
  }

  /** Expires first, so that capacity freed too late does not admit a place that has waited beyond the maximum. */
  function settle(nowMs: number): void {
    if (queue.head === undefined && batch.queue.depth === 0) return
    expireDue(nowMs)
    pump(nowMs)
    makeWay()
    pumpBatch(nowMs)
  }

  function arriveAsBatch(place: Place, nowMs: number): LaneDecision | undefined {
    if (batch.isTooLarge(place)) return tooLarge
    if (batch.queue.depth === 0 && fitsAsBatch(place)) {
      charge(place)
      return admittedAtOnce
    }
    if (batch.queue.depth >= batch.limits.maxQueueDepth) return queueFull
    if (place.maxWaitMs <= 0) return overloaded
    place.dueAtMs = nowMs + place.maxWaitMs
    place.state = 'queued'
    batch.queue.add(place)
    return undefined
  }

  return {
    arrive(place, nowMs) {
      if (place.state !== 'outside') throw new Error('a place can arrive only while it is outside the lane')
      place.arrivedAtMs = nowMs
      settle(nowMs)
      if (isClosed) return closed
      if (place.tier === 'batch') return arriveAsBatch(place, nowMs)
      if (place.cost > limits.tokenBudget) return tooLarge
      if (isWorkspaceFull(place)) return workspaceQueueFull
      if (queue.head === undefined && fits(place)) {
        charge(place)
        return admittedAtOnce
      }
      if (isQueueFull(place)) return queueFull
      if (limits.maxWaitMs === 0) return overloaded
      enqueue(place)
      makeWay()
      return undefined
    },
    leave(place, nowMs) {
      if (place.state === 'queued') cancel(place)
      else if (place.state === 'in_flight') release(place)
      else return
      settle(nowMs)
    },
    keep: (place) => place.state === 'in_flight' && batch.preemption.keep(place),
    expire: settle,
    setLimits(next, nowMs) {
      limits = checked(next)
      batch.setLimits(limits)
      settle(nowMs)
    },
    close() {
      isClosed = true
      for (let place = queue.head; place !== undefined; place = queue.head) refuse(place, closed)
      for (let place = batch.queue.head(); place !== undefined; place = batch.queue.head()) refuse(place, closed)
    },
    status: () => ({ limits, inFlightRequests, committedTokens, queueDepth: queue.depth, batch: batch.status() }),
    oldestArrivalMs: () => queue.head?.arrivedAtMs,
    nextDeadlineMs() {
      const earliest = queue.earliest()
      const online = earliest === undefined ? Infinity : deadlineMs(earliest)
      return Math.min(online, earliestLine()?.dueAtMs ?? Infinity)
    },
  }
}

/** Fixed on arrival: a changed maximum wait applies only to later arrivals. */
function deadlineMs(group: DeadlineGroup): number {
  return group.first.arrivedAtMs + group.maxWaitMs
}

function checked(limits: LaneLimits): LaneLimits {
  const { tokenBudget, maxConcurrentRequests, maxQueueDepth, maxWaitMs, maxRequestsPerWorkspace = 0 } = limits
  const { reserveConcurrent, reserveTokens, maxShare, maxQueueDepth: batchDepth } = batchLimitsOf(limits)
  if (!(maxShare >= 0 && maxShare <= 1))
    throw new RangeError(`the share of batch places must be from 0 to 1: ${maxShare}`)
  const whole = [tokenBudget, maxConcurrentRequests, maxQueueDepth, maxWaitMs, maxRequestsPerWorkspace]
  for (const limit of [...whole, reserveConcurrent, reserveTokens, batchDepth]) {
    if (!Number.isSafeInteger(limit) || limit < 0) throw new RangeError(`a limit must be a whole number ≥ 0: ${limit}`)
  }
  return limits
}
