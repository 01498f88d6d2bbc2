import type { BatchLimits, BatchStatus } from '../../../src/queue/batch-places.ts'
import { Place, type Tier } from '../../../src/queue/lane.ts'
import type { LaneDecision, LaneLimits, LaneStatus } from '../../../src/queue/lane.ts'

export type Invariant =
  | 'I1'
  | 'I2'
  | 'I3'
  | 'I4'
  | 'I5'
  | 'I6'
  | 'I7'
  | 'I8'
  | 'I9'
  | 'I10'
  | 'I12'
  | 'I13'
  | 'I14'
  | 'I15'
  | 'I16'
  | 'I17'
  | 'I18'
  | 'I19'
  | 'I20'

export class Violation extends Error {
  readonly invariant: Invariant

  constructor(invariant: Invariant, message: string) {
    super(`${invariant}: ${message}`)
    this.invariant = invariant
  }
}

/** A request as seen from outside the lane. Nothing here is read from the lane's own fields. */
export class Request extends Place {
  readonly number: number
  cameAtMs = 0
  expiresAtMs = 0
  standing: 'outside' | 'queue' | 'flight' | 'gone' = 'outside'
  isPreempted = false
  isKept = false

  constructor(number: number, cost: number, workspace: string, tier: Tier, maxWaitMs: number) {
    super(cost, workspace, tier, maxWaitMs)
    this.number = number
  }
}

/**
 * The reference: plain lists of what has happened, summed from scratch every time. It predicts nothing. It checks
 * whether the invariants (src/queue/design.md) allow what the lane did, and whether anything is missing.
 */
export class Witness {
  limits: LaneLimits
  isClosed = false
  readonly queue: Request[] = []
  /** In the order of their start. */
  readonly flight: Request[] = []
  /** Batch places that wait, in the order of arrival. */
  readonly batchQueue: Request[] = []
  /** The workspaces of these places, by whose turn it is. */
  readonly #turns: string[] = []
  #newlyPreempted: Request[] = []
  #lastAdmitted = -1

  constructor(limits: LaneLimits) {
    this.limits = limits
  }

  /** Checks what `arrive` returned; undefined for a place in the queue. */
  arrived(request: Request, nowMs: number, decision: LaneDecision | undefined): void {
    request.cameAtMs = nowMs
    if (request.tier === 'batch') return this.#arrivedAsBatch(request, decision)
    request.expiresAtMs = nowMs + this.limits.maxWaitMs
    const tooLarge = request.cost > this.limits.tokenBudget
    const free = this.queue.length === 0 && this.#fits(request)
    if (this.isClosed) {
      demand(decision?.kind === 'closed', 'I8', 'a closed lane refuses with `closed`')
    } else if (tooLarge || decision?.kind === 'too_large') {
      demand(tooLarge && decision?.kind === 'too_large', 'I10', 'too_large, at once, exactly when cost > budget')
    } else if (this.#isWorkspaceFull(request) || decision?.kind === 'workspace_queue_full') {
      demand(
        this.#isWorkspaceFull(request) && decision?.kind === 'workspace_queue_full',
        'I14',
        'workspace_queue_full, at once, exactly when the workspace has its most',
      )
    } else if (decision === undefined) {
      request.standing = 'queue'
      this.queue.push(request)
      demand(this.#uncovered() <= this.limits.maxQueueDepth, 'I4', 'the queue stays below its depth')
      return
    } else if (decision.kind === 'admitted') {
      demand(this.queue.length === 0, 'I3', 'no request is admitted past a queue')
      demand(decision.waitMs === 0, 'I13', 'a request that is admitted at once has not waited')
      this.#admit(request)
      return
    } else if (decision.kind === 'overloaded') {
      demand(this.limits.maxWaitMs === 0, 'I5', 'overloaded on arrival where waiting is allowed')
      demand(!free && !this.#isFullFor(request), 'I4', 'overloaded only when busy and not full')
    } else {
      demand(!free && this.#isFullFor(request), 'I4', 'queue_full only when busy and full')
    }
    request.standing = 'gone'
  }

  /** Checks the decision for a request that waited. */
  decided(request: Request, nowMs: number, decision: LaneDecision): void {
    demand(request.standing === 'queue', 'I8', `a second outcome for a request that is ${request.standing}`)
    if (request.tier === 'batch') return this.#decidedAsBatch(request, nowMs, decision)
    switch (decision.kind) {
      case 'admitted':
        demand(this.queue[0] === request, 'I3', 'only the head of the queue is admitted')
        demand(nowMs < request.expiresAtMs, 'I5', 'no request is admitted beyond the maximum wait')
        demand(decision.waitMs === nowMs - request.cameAtMs, 'I13', 'the wait is the time in the queue')
        this.#dequeue(request)
        this.#admit(request)
        return
      case 'overloaded':
        demand(nowMs >= request.expiresAtMs, 'I5', 'overloaded before the maximum wait')
        break
      case 'too_large':
        demand(this.queue[0] === request, 'I12', 'too_large is for the head of the queue')
        demand(request.cost > this.limits.tokenBudget, 'I12', 'too_large is for what exceeds the whole budget')
        break
      case 'closed':
        demand(this.isClosed, 'I12', 'closed by a lane that is open')
        break
      case 'queue_full':
      case 'workspace_queue_full':
        throw new Violation('I12', `${decision.kind} for a request that is already queued`)
    }
    this.#dequeue(request)
    request.standing = 'gone'
  }

  left(request: Request): void {
    if (request.standing === 'queue') this.#dequeue(request)
    if (request.standing === 'flight') this.flight.splice(this.flight.indexOf(request), 1)
    request.standing = 'gone'
  }

  /**
   * Runs after every event: the lane's figures match this record, and everything that is due was done. `graceMs`
   * is how late the timer may be after an event that did not concern the lane.
   */
  inspect(nowMs: number, graceMs: number, status: LaneStatus, nextDeadlineMs: number): void {
    demand(status.inFlightRequests === this.flight.length, 'I2', 'in flight = admitted and not ended')
    demand(status.committedTokens === this.#committed(), 'I2', 'committed = the charges in flight')
    demand(status.queueDepth === this.queue.length, 'I6', 'queued = waiting clients without an outcome')
    const [head] = this.queue
    demand(head === undefined || !this.#fits(head), 'I7', 'a head that fits was left waiting')
    demand(
      head === undefined || head.cost <= this.limits.tokenBudget,
      'I7',
      'a head that can never fit blocks the lane',
    )
    demand(!this.isClosed || head === undefined, 'I8', 'a request waits in a closed lane')
    this.#inspectBatch(status.batch)
    this.#inspectPreemption()
    let earliestMs = Infinity
    for (const request of [...this.queue, ...this.batchQueue]) earliestMs = Math.min(earliestMs, request.expiresAtMs)
    demand(earliestMs > nowMs - graceMs, 'I5', 'a request waits beyond the maximum wait')
    demand(nextDeadlineMs === earliestMs, 'I5', `the timer is set for ${nextDeadlineMs} instead of ${earliestMs}`)
  }

  #admit(request: Request): void {
    demand(this.flight.length < this.limits.maxConcurrentRequests, 'I1', 'admitted above the concurrency limit')
    demand(this.#committed() + request.cost <= this.limits.tokenBudget, 'I2', 'admitted above the token budget')
    if (request.tier === 'online') {
      demand(request.number > this.#lastAdmitted, 'I3', 'admitted out of the order of arrival')
      this.#lastAdmitted = request.number
    }
    request.standing = 'flight'
    this.flight.push(request)
  }

  #dequeue(request: Request): void {
    const queue = request.tier === 'batch' ? this.batchQueue : this.queue
    queue.splice(queue.indexOf(request), 1)
    const { workspace } = request
    if (request.tier === 'online' || this.batchQueue.some((other) => other.workspace === workspace)) return
    this.#turns.splice(this.#turns.indexOf(workspace), 1)
  }

  #arrivedAsBatch(request: Request, decision: LaneDecision | undefined): void {
    request.expiresAtMs = request.cameAtMs + request.maxWaitMs
    const tooLarge = this.#isTooLargeForBatch(request)
    const free = this.batchQueue.length === 0 && this.#fitsAsBatch(request)
    const isFull = this.batchQueue.length >= this.#batch().maxQueueDepth
    if (this.isClosed) {
      demand(decision?.kind === 'closed', 'I8', 'a closed lane refuses with `closed`')
    } else if (tooLarge || decision?.kind === 'too_large') {
      demand(tooLarge && decision?.kind === 'too_large', 'I10', 'too_large, at once, exactly for what never fits')
    } else if (decision === undefined) {
      demand(!isFull, 'I20', 'the queue of batch places stays below its depth')
      demand(request.maxWaitMs > 0, 'I20', 'a batch place waits although it may not')
      request.standing = 'queue'
      this.batchQueue.push(request)
      if (!this.#turns.includes(request.workspace)) this.#turns.push(request.workspace)
      return
    } else if (decision.kind === 'admitted') {
      demand(this.batchQueue.length === 0, 'I17', 'no batch place is admitted past those that wait')
      demand(decision.waitMs === 0, 'I13', 'a request that is admitted at once has not waited')
      this.#admitAsBatch(request)
      return
    } else if (decision.kind === 'overloaded') {
      demand(!free && !isFull && request.maxWaitMs === 0, 'I20', 'overloaded on arrival only when it may not wait')
    } else {
      demand(!free && isFull && decision.kind === 'queue_full', 'I20', 'queue_full only when busy and full')
    }
    request.standing = 'gone'
  }

  #decidedAsBatch(request: Request, nowMs: number, decision: LaneDecision): void {
    const isNext = this.#nextOfBatch() === request
    if (decision.kind === 'admitted') {
      demand(isNext, 'I17', 'workspaces take turns, and each has its places admitted in order')
      demand(nowMs < request.expiresAtMs, 'I20', 'no batch place is admitted beyond its maximum wait')
      demand(decision.waitMs === nowMs - request.cameAtMs, 'I13', 'the wait is the time in the queue')
      this.#dequeue(request)
      if (this.#turns[0] === request.workspace) this.#turns.push(this.#turns.shift()!)
      this.#admitAsBatch(request)
      return
    }
    if (decision.kind === 'overloaded')
      demand(nowMs >= request.expiresAtMs, 'I20', 'overloaded before its maximum wait')
    else if (decision.kind === 'too_large')
      demand(isNext && this.#isTooLargeForBatch(request), 'I12', 'too_large early')
    else demand(decision.kind === 'closed' && this.isClosed, 'I12', `${decision.kind} for a batch place that waits`)
    this.#dequeue(request)
    request.standing = 'gone'
  }

  preempted(request: Request): void {
    const candidates = this.flight.filter((other) => isPreemptible(other))
    demand(
      candidates.includes(request),
      'I19',
      'only batch places in flight are preempted, once, and none that is kept',
    )
    demand(this.#batch().preempt, 'I19', 'preempted although the limits do not allow it')
    demand(candidates.at(-1) === request, 'I18', 'the youngest batch place is preempted first')
    request.isPreempted = true
    this.#newlyPreempted.push(request)
  }

  kept(request: Request, isKept: boolean): void {
    demand(isKept === !request.isPreempted, 'I19', 'a place is kept unless it has been preempted')
    request.isKept = true
  }

  #inspectBatch({ inFlightRequests, committedTokens, queueDepth }: BatchStatus): void {
    const inFlight = this.#batchInFlight()
    demand(inFlightRequests === inFlight.length, 'I2', 'batch places in flight = admitted and not ended')
    demand(committedTokens === costOf(inFlight), 'I2', 'committed = the charges of batch places in flight')
    demand(queueDepth === this.batchQueue.length, 'I6', 'queued = waiting batch places without an outcome')
    demand(!this.isClosed || queueDepth === 0, 'I8', 'a batch place waits in a closed lane')
    const next = this.#nextOfBatch()
    demand(next === undefined || !this.#fitsAsBatch(next), 'I17', 'a batch place that fits was left waiting')
    demand(next === undefined || !this.#isTooLargeForBatch(next), 'I17', 'a place that can never fit blocks all others')
  }

  #inspectPreemption(): void {
    const gone = this.flight.filter(({ isPreempted }) => isPreempted)
    const covered = this.#coveredWithout(gone)
    if (this.#batch().preempt) {
      const most = this.#coveredWithout(this.flight.filter((other) => other.isPreempted || isPreemptible(other)))
      demand(covered === most, 'I18', 'an online place waits for a batch place that could be preempted')
    }
    const last = this.#newlyPreempted.at(-1)
    this.#newlyPreempted = []
    const fewer = gone.filter((other) => other !== last)
    demand(last === undefined || covered > this.#coveredWithout(fewer), 'I18', 'preempted more than needed')
  }

  /** How many of the first online places that wait would fit if these places were gone from the flight. */
  #coveredWithout(gone: readonly Request[], queue: readonly Request[] = this.queue): number {
    if (gone.length === 0) return 0
    let requests = this.flight.length - gone.length
    let tokens = this.#committed() - costOf(gone)
    let covered = 0
    for (const { cost } of queue) {
      requests += 1
      tokens += cost
      if (requests > this.limits.maxConcurrentRequests || tokens > this.limits.tokenBudget) break
      covered += 1
    }
    return covered
  }

  /** Online places that wait for more than batch places that give way. */
  #uncovered(): number {
    return this.queue.length - this.#coveredWithout(this.flight.filter(({ isPreempted }) => isPreempted))
  }

  #isFullFor(request: Request): boolean {
    const mayGo = this.flight.filter((other) => other.isPreempted || (this.#batch().preempt && isPreemptible(other)))
    const isCovered = this.#coveredWithout(mayGo, [...this.queue, request]) > this.queue.length
    return !isCovered && this.#uncovered() >= this.limits.maxQueueDepth
  }

  #batch(): BatchLimits {
    return this.limits.batch as BatchLimits
  }

  #batchInFlight(): Request[] {
    return this.flight.filter(({ tier }) => tier === 'batch')
  }

  #nextOfBatch(): Request | undefined {
    return this.batchQueue.find(({ workspace }) => workspace === this.#turns[0])
  }

  /** The shares in the simulation are exact: quarters of whole numbers, rounded down. */
  #isTooLargeForBatch({ cost }: Request): boolean {
    const { tokenBudget } = this.limits
    const { reserveTokens, maxShare } = this.#batch()
    const most = Math.min(Math.floor(tokenBudget * maxShare), tokenBudget - reserveTokens)
    return cost > tokenBudget || (most > 0 && cost > most)
  }

  #fitsAsBatch(request: Request): boolean {
    return this.queue.length === 0 && this.limits.maxWaitMs > 0 && this.#keepsReserve(request)
  }

  #keepsReserve({ cost }: Request): boolean {
    const { tokenBudget, maxConcurrentRequests } = this.limits
    const { reserveConcurrent, reserveTokens, maxShare } = this.#batch()
    const inFlight = this.#batchInFlight()
    return (
      this.flight.length + 1 + reserveConcurrent <= maxConcurrentRequests &&
      this.#committed() + cost + reserveTokens <= tokenBudget &&
      inFlight.length + 1 <= maxConcurrentRequests * maxShare &&
      costOf(inFlight) + cost <= tokenBudget * maxShare
    )
  }

  #admitAsBatch(request: Request): void {
    demand(this.queue.length === 0, 'I15', 'a batch place was admitted while an online place waits')
    demand(this.limits.maxWaitMs > 0, 'I15', 'a batch place was admitted although online places may not wait for it')
    demand(this.#keepsReserve(request), 'I16', 'a batch place was admitted into the reserve, or above its share')
    this.#admit(request)
  }

  #fits(request: Request): boolean {
    return (
      this.flight.length < this.limits.maxConcurrentRequests &&
      this.#committed() + request.cost <= this.limits.tokenBudget
    )
  }

  #isWorkspaceFull({ workspace }: Request): boolean {
    const online = [...this.queue, ...this.flight].filter(({ tier }) => tier === 'online')
    const places = online.filter((other) => other.workspace === workspace).length
    return places >= (this.limits.maxRequestsPerWorkspace ?? Infinity)
  }

  #committed(): number {
    return costOf(this.flight)
  }
}

function isPreemptible({ tier, isPreempted, isKept }: Request): boolean {
  return tier === 'batch' && !isPreempted && !isKept
}

function costOf(requests: readonly Request[]): number {
  let tokens = 0
  for (const { cost } of requests) tokens += cost
  return tokens
}

function demand(holds: boolean, invariant: Invariant, message: string): asserts holds {
  if (!holds) throw new Violation(invariant, message)
}
