import type { BatchLimits } from '../../../src/queue/batch-places.ts'
import type { LaneDecision, LaneLimits, LaneStatus } from '../../../src/queue/lane.ts'
import { seededRandom } from '../../../src/shared/seeded-random.ts'
import { Request, Violation, Witness } from './witness.ts'

/** A lane in memory, or one with asynchronous answers. */
export interface SimulatedLane {
  arrive(request: Request, nowMs: number): LaneDecision | undefined | Promise<LaneDecision | undefined>
  leave(request: Request, nowMs: number): void | Promise<void>
  keep(request: Request, nowMs: number): boolean | Promise<boolean>
  /** Keeps a preempted place whose replica does not know yet that it was preempted. */
  keepUnaware?(request: Request, nowMs: number): Promise<void>
  expire(nowMs: number): void | Promise<void>
  setLimits(limits: LaneLimits, nowMs: number): void | Promise<void>
  close(waiting: readonly Request[], nowMs: number): void | Promise<void>
  status(): LaneStatus
  nextDeadlineMs(): number
}

export type OpenLane = (
  limits: LaneLimits,
  decide: (request: Request, decision: LaneDecision) => void,
  preempt: (request: Request) => void,
) => SimulatedLane | Promise<SimulatedLane>

/** How often each event occurred. A simulation in which the rare events never occur proves nothing. */
export interface Tally extends BatchTally {
  requests: number
  steps: number
  admittedAtOnce: number
  admitted: number
  queueFull: number
  workspaceQueueFull: number
  overloaded: number
  tooLarge: number
  closed: number
  cancelled: number
  staleLeaves: number
  limitChanges: number
}

/** Events that occur only with batch places. */
interface BatchTally {
  batchAdmittedAtOnce: number
  batchAdmitted: number
  batchQueueFull: number
  batchOverloaded: number
  batchTooLarge: number
  preempted: number
  kept: number
  keptTooLate: number
}

const requestsPerEpisode = 1000

/** I5 allows less than 100 ms. */
const timerLateMsMax = 99

/** Yields the promises to await. A lane in memory never yields, which makes its simulation ten times as fast. */
type Steps<Result = void> = Generator<Promise<unknown>, Result, unknown>

function* answerOf<Answer>(answer: Answer | Promise<Answer>): Steps<Answer> {
  return answer instanceof Promise ? ((yield answer) as Answer) : answer
}

/**
 * Runs lanes, one per episode, under random load, faults and limit changes, in virtual time. The same seed gives
 * the same run. A violation names its episode.
 */
export function simulateLanes(openLane: OpenLane, seed: number, requests: number): Tally {
  const { done, value } = simulation(openLane, seed, requests).next()
  if (!done) throw new Error('this lane is asynchronous: use simulateRemoteLanes')
  return value
}

/** The same for lanes with asynchronous answers. Each step waits for the answer to the last one. */
export async function simulateRemoteLanes(openLane: OpenLane, seed: number, requests: number): Promise<Tally> {
  const steps = simulation(openLane, seed, requests)
  let step = steps.next()
  while (!step.done) {
    const answer = await step.value.then(
      (value) => () => steps.next(value),
      (error: unknown) => () => steps.throw(error),
    )
    step = answer()
  }
  return step.value
}

function* simulation(openLane: OpenLane, seed: number, requests: number): Steps<Tally> {
  const tally: Tally = {
    requests: 0,
    steps: 0,
    admittedAtOnce: 0,
    admitted: 0,
    queueFull: 0,
    workspaceQueueFull: 0,
    overloaded: 0,
    tooLarge: 0,
    closed: 0,
    cancelled: 0,
    staleLeaves: 0,
    limitChanges: 0,
    batchAdmittedAtOnce: 0,
    batchAdmitted: 0,
    batchQueueFull: 0,
    batchOverloaded: 0,
    batchTooLarge: 0,
    preempted: 0,
    kept: 0,
    keptTooLate: 0,
  }
  for (let episode = 0; tally.requests < requests; episode += 1) {
    const stepsBefore = tally.steps
    try {
      yield* liveEpisode(openLane, seededRandom(seed + Math.imul(episode, 0x9e3779b1)), tally)
    } catch (error) {
      if (!(error instanceof Violation)) throw error
      error.message += ` (seed ${seed}, episode ${episode}, step ${tally.steps - stepsBefore})`
      throw error
    }
  }
  return tally
}

function* liveEpisode(openLane: OpenLane, random: () => number, tally: Tally): Steps {
  const below = (count: number): number => Math.floor(random() * count)
  const oneOf = <T>(list: readonly T[]): T => list[below(list.length)]!
  const chance = (probability: number): boolean => random() < probability

  const anyLimits = (): LaneLimits => ({
    tokenBudget: oneOf([0, 1, 10, 100, 100, 1000, 1000, 5000]),
    maxConcurrentRequests: oneOf([0, 1, 1, 2, 3, 5, 8, 16, 40]),
    maxQueueDepth: oneOf([0, 1, 2, 5, 10, 10, 40, 100]),
    maxWaitMs: oneOf([0, 1, 10, 50, 100, 100, 500, 2000]),
    maxRequestsPerWorkspace: oneOf([undefined, undefined, undefined, 1, 3, 10]),
    batch: {
      reserveConcurrent: oneOf([0, 0, 1, 2]),
      reserveTokens: oneOf([0, 0, 1, 20, 200]),
      maxShare: oneOf([0, 0.25, 0.5, 1, 1, 1]),
      preempt: !chance(0.2),
      maxQueueDepth: oneOf([0, 1, 5, 20, 100]),
    },
  })
  /** Mostly changes one control at a time, so that a missed reaction to it is not hidden by another. */
  const changedLimits = (): LaneLimits => {
    if (preempted().length > 0 && chance(0.5)) {
      const { maxConcurrentRequests } = witness.limits
      return { ...witness.limits, maxConcurrentRequests: Math.max(1, maxConcurrentRequests - 1 - below(3)) }
    }
    const other = anyLimits()
    const name = oneOf(Object.keys(other) as (keyof LaneLimits)[])
    if (name === 'batch' && chance(0.8)) {
      const part = oneOf(Object.keys(other.batch!) as (keyof BatchLimits)[])
      return { ...witness.limits, batch: { ...witness.limits.batch, [part]: other.batch![part] } }
    }
    return chance(0.2) ? other : { ...witness.limits, [name]: other[name] }
  }
  const anyCost = (): number => {
    const { tokenBudget } = witness.limits
    if (chance(0.02)) return tokenBudget
    if (chance(0.02)) return tokenBudget + 1 + below(10)
    return below(chance(0.8) ? tokenBudget / 4 + 2 : tokenBudget + 1)
  }

  const witness = new Witness(anyLimits())
  const lane = yield* answerOf(openLane(witness.limits, decide, preempt))
  const gapMs = oneOf([0.5, 2, 10, 50])
  const cancels = oneOf([0, 0.02, 0.2])
  const batchShare = oneOf([0, 0.3, 0.6, 0.9])
  /** How soon the engine ends a call that is aborted. */
  const abortsWithin = oneOf([0, 0.03, 0.1, 0.5])
  let arrivals = 0.5
  const isOver = (): boolean => number >= requestsPerEpisode
  const waiting = (): Request[] => [...witness.queue, ...witness.batchQueue]
  const everybody = (): Request[] => [...waiting(), ...witness.flight]
  const preempted = (): Request[] => witness.flight.filter(({ isPreempted }) => isPreempted)
  const inBatch = (): Request[] => witness.flight.filter(({ tier }) => tier === 'batch')
  const gone: Request[] = []
  let nowMs = below(1000)
  let number = 0

  function decide(request: Request, decision: LaneDecision): void {
    witness.decided(request, nowMs, decision)
    count(request, decision)
    if (request.standing === 'gone') remember(request)
  }

  function preempt(request: Request): void {
    witness.preempted(request)
    tally.preempted += 1
  }

  function count({ tier }: Request, decision: LaneDecision): void {
    if (tier === 'batch') return countBatch(decision)
    if (decision.kind === 'admitted') tally.admitted += 1
    else if (decision.kind === 'queue_full') tally.queueFull += 1
    else if (decision.kind === 'workspace_queue_full') tally.workspaceQueueFull += 1
    else if (decision.kind === 'overloaded') tally.overloaded += 1
    else if (decision.kind === 'too_large') tally.tooLarge += 1
    else tally.closed += 1
  }

  function countBatch({ kind }: LaneDecision): void {
    if (kind === 'admitted') tally.batchAdmitted += 1
    else if (kind === 'queue_full') tally.batchQueueFull += 1
    else if (kind === 'overloaded') tally.batchOverloaded += 1
    else if (kind === 'too_large') tally.batchTooLarge += 1
    else tally.closed += 1
  }

  function remember(request: Request): void {
    if (gone.length < 20) gone.push(request)
    else gone[below(20)] = request
  }

  function* arrive(): Steps {
    const [tier, maxWaitMs] = chance(batchShare)
      ? (['batch', oneOf([0, 1, 50, 100, 500, Infinity, Infinity])] as const)
      : (['online', Infinity] as const)
    const request = new Request(number, anyCost(), oneOf(['acme', 'bolt', 'core']), tier, maxWaitMs)
    number += 1
    tally.requests += 1
    const decision = yield* answerOf(lane.arrive(request, nowMs))
    witness.arrived(request, nowMs, decision)
    if (decision === undefined) return
    if (decision.kind === 'admitted') tally[tier === 'batch' ? 'batchAdmittedAtOnce' : 'admittedAtOnce'] += 1
    count(request, decision)
    if (decision.kind !== 'admitted') remember(request)
  }

  /** Updates the witness first, because the lane may decide about other requests before it returns. */
  function* leave(request: Request): Steps {
    if (request.standing === 'queue') tally.cancelled += 1
    remember(request)
    witness.left(request)
    yield* answerOf(lane.leave(request, nowMs))
  }

  /** A second cancel or release, a late one, or one by a refused request: it must change nothing. */
  function* leaveAgain(request: Request): Steps {
    tally.staleLeaves += 1
    yield* answerOf(lane.leave(request, nowMs))
    inspect(timerLateMsMax)
  }

  /** The answer of a flex request has begun, so it is not preempted any more. */
  function* keep(request: Request): Steps {
    if (request.isPreempted && lane.keepUnaware && chance(0.5)) return yield* keepUnaware(request)
    const isKept = yield* answerOf(lane.keep(request, nowMs))
    witness.kept(request, isKept)
    tally[isKept ? 'kept' : 'keptTooLate'] += 1
    inspect(timerLateMsMax)
  }

  /** Others have to give way instead. */
  function* keepUnaware(request: Request): Steps {
    request.isPreempted = false
    request.isKept = true
    tally.kept += 1
    yield* answerOf(lane.keepUnaware!(request, nowMs))
    inspect(timerLateMsMax)
  }

  function* changeLimits(): Steps {
    witness.limits = changedLimits()
    tally.limitChanges += 1
    yield* answerOf(lane.setLimits(witness.limits, nowMs))
  }

  function* close(): Steps {
    witness.isClosed = true
    yield* answerOf(lane.close(waiting(), nowMs))
  }

  /** The timer is sometimes late, so that other events come between a deadline and its expiry. */
  function* step(): Steps {
    const wakeMs = lane.nextDeadlineMs() + oneOf([0, 0, 0, 0.25, 30, timerLateMsMax])
    const laterMs = nowMs + (chance(0.7) ? Math.ceil(-Math.log(1 - random()) * gapMs * 4) / 4 : 0)
    if (laterMs >= wakeMs) {
      nowMs = Math.max(nowMs, wakeMs)
      yield* answerOf(lane.expire(nowMs))
    } else {
      nowMs = laterMs
      yield* happen()
    }
    inspect(0)
  }

  function* happen(): Steps {
    const event = random()
    if (gone.length > 0 && chance(0.03)) yield* leaveAgain(oneOf(gone))
    if (batchShare > 0 && chance(0.06) && inBatch().length > 0) yield* keep(oneOf(inBatch()))
    if (chance(0.02)) arrivals = oneOf([0.1, 0.5, 0.6, 0.8, 0.95])
    if (event < (preempted().length > 0 ? 0.05 : 0.004)) yield* changeLimits()
    else if (event < 0.005 && number > requestsPerEpisode * 0.9) yield* close()
    else if (event < 0.02) yield* answerOf(lane.expire(nowMs))
    else if (waiting().length > 0 && chance(cancels)) yield* leave(oneOf(waiting()))
    else if (preempted().length > 0 && chance(abortsWithin)) yield* leave(oneOf(preempted()))
    else if (witness.flight.length > 0 && !chance(arrivals)) yield* leave(oneOf(witness.flight))
    else yield* arrive()
  }

  function inspect(graceMs: number): void {
    tally.steps += 1
    witness.inspect(nowMs, graceMs, lane.status(), lane.nextDeadlineMs())
  }

  while (!isOver()) yield* step()
  for (let rest = everybody(); rest.length > 0; rest = everybody()) {
    yield* leave(oneOf(rest))
    inspect(timerLateMsMax)
  }
  const { inFlightRequests, committedTokens, queueDepth, batch } = lane.status()
  if ([inFlightRequests, committedTokens, queueDepth, ...Object.values(batch)].some((figure) => figure !== 0)) {
    throw new Violation('I9', 'no clients, and yet the lane is not empty')
  }
}
