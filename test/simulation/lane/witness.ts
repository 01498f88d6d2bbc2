import { Place } from '../../../src/queue/lane.ts'
import type { LaneDecision, LaneLimits, LaneStatus } from '../../../src/queue/lane.ts'

export type Invariant = 'I1' | 'I2' | 'I3' | 'I4' | 'I5' | 'I6' | 'I7' | 'I8' | 'I9' | 'I10' | 'I12' | 'I13' | 'I14'

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
  dueAtMs = 0
  standing: 'outside' | 'queue' | 'flight' | 'gone' = 'outside'

  constructor(number: number, cost: number, workspace: string) {
    super(cost, workspace)
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
  readonly flight: Request[] = []
  #lastAdmitted = -1

  constructor(limits: LaneLimits) {
    this.limits = limits
  }

  /** Checks what `arrive` returned; undefined for a place in the queue. */
  arrived(request: Request, nowMs: number, decision: LaneDecision | undefined): void {
    request.cameAtMs = nowMs
    request.dueAtMs = nowMs + this.limits.maxWaitMs
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
      demand(this.queue.length < this.limits.maxQueueDepth, 'I4', 'the queue stays below its depth')
      request.standing = 'queue'
      this.queue.push(request)
      return
    } else if (decision.kind === 'admitted') {
      demand(this.queue.length === 0, 'I3', 'no request is admitted past a queue')
      demand(decision.waitMs === 0, 'I13', 'a request that is admitted at once has not waited')
      this.#admit(request)
      return
    } else if (decision.kind === 'overloaded') {
      demand(this.limits.maxWaitMs === 0, 'I5', 'overloaded on arrival where waiting is allowed')
      demand(!free && this.queue.length < this.limits.maxQueueDepth, 'I4', 'overloaded only when busy and not full')
    } else {
      demand(!free && this.queue.length >= this.limits.maxQueueDepth, 'I4', 'queue_full only when busy and full')
    }
    request.standing = 'gone'
  }

  /** Checks the decision for a request that waited. */
  decided(request: Request, nowMs: number, decision: LaneDecision): void {
    demand(request.standing === 'queue', 'I8', `a second outcome for a request that is ${request.standing}`)
    switch (decision.kind) {
      case 'admitted':
        demand(this.queue[0] === request, 'I3', 'only the head of the queue is admitted')
        demand(nowMs < request.dueAtMs, 'I5', 'no request is admitted beyond the maximum wait')
        demand(decision.waitMs === nowMs - request.cameAtMs, 'I13', 'the wait is the time in the queue')
        this.#dequeue(request)
        this.#admit(request)
        return
      case 'overloaded':
        demand(nowMs >= request.dueAtMs, 'I5', 'overloaded before the maximum wait')
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
    let earliestMs = Infinity
    for (const request of this.queue) earliestMs = Math.min(earliestMs, request.dueAtMs)
    demand(earliestMs > nowMs - graceMs, 'I5', 'a request waits beyond the maximum wait')
    demand(nextDeadlineMs === earliestMs, 'I5', `the timer is set for ${nextDeadlineMs} instead of ${earliestMs}`)
  }

  #admit(request: Request): void {
    demand(this.flight.length < this.limits.maxConcurrentRequests, 'I1', 'admitted above the concurrency limit')
    demand(this.#committed() + request.cost <= this.limits.tokenBudget, 'I2', 'admitted above the token budget')
    demand(request.number > this.#lastAdmitted, 'I3', 'admitted out of the order of arrival')
    this.#lastAdmitted = request.number
    request.standing = 'flight'
    this.flight.push(request)
  }

  #dequeue(request: Request): void {
    this.queue.splice(this.queue.indexOf(request), 1)
  }

  #fits(request: Request): boolean {
    return (
      this.flight.length < this.limits.maxConcurrentRequests &&
      this.#committed() + request.cost <= this.limits.tokenBudget
    )
  }

  #isWorkspaceFull({ workspace }: Request): boolean {
    const places = [...this.queue, ...this.flight].filter((other) => other.workspace === workspace).length
    return places >= (this.limits.maxRequestsPerWorkspace ?? Infinity)
  }

  #committed(): number {
    let tokens = 0
    for (const request of this.flight) tokens += request.cost
    return tokens
  }
}

function demand(holds: boolean, invariant: Invariant, message: string): asserts holds {
  if (!holds) throw new Violation(invariant, message)
}
