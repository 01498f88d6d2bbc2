import { openLane, Place } from './lane.ts'
import type { LaneDecision, LaneLimits, Tier } from './lane.ts'

/** One request of a synthetic or recorded load. */
export interface Arrival {
  /** Since the beginning of the load. */
  readonly atMs: number
  readonly inputTokens: number
  readonly maxTokens: number
  /** What the engine actually generates; at most maxTokens. */
  readonly outputTokens: number
}

export interface EngineSpeed {
  /** The speed of a single stream with no other requests on the engine. */
  readonly tokensPerSecond: number
  readonly prefillTokensPerSecond: number
  /** How much each additional request slows down all of them: 0.02 means half speed at 51 requests. */
  readonly slowdown: number
}

/** Lines of a batch that are ready from the beginning, and run on what the other requests leave idle. */
export interface BatchLoad {
  /** Infinity: as many as fit. */
  readonly lines: number
  readonly inputTokens: number
  readonly outputTokens: number
}

interface QueueLoad {
  readonly limits: LaneLimits
  readonly engine: EngineSpeed
  /** In order of time. */
  readonly arrivals: Iterable<Arrival>
  /** The period over which utilisation is measured. Every request that arrives in it is simulated to its end. */
  readonly durationMs: number
  readonly batch?: BatchLoad | undefined
}

export interface Spread {
  readonly mean: number
  readonly p50: number
  readonly p90: number
  readonly p95: number
  readonly p99: number
  readonly max: number
}

export interface BatchReport {
  /** The lines that ended in the period. */
  readonly lines: number
  readonly linesPerDay: number
  /** How often a line was aborted for a request that would have waited. It began again later. */
  readonly preempted: number
}

/** Averages over one part of the period. */
export interface Moment {
  readonly inFlightRequests: number
  readonly committedTokens: number
  readonly queueDepth: number
}

export interface QueueReport {
  readonly limits: LaneLimits
  readonly requests: number
  readonly admittedAtOnce: number
  readonly admittedAfterWait: number
  readonly queueFull: number
  readonly overloaded: number
  readonly tooLarge: number
  /** Milliseconds before admission, of all admitted requests; null if there were none. */
  readonly waitMs: Spread | null
  /** Milliseconds from arrival to the last token. More concurrency shortens waits but may slow down each answer. */
  readonly answerMs: Spread | null
  /** How much of the limits was in use over the period, from 0 to 1. */
  readonly concurrencyUse: number
  readonly budgetUse: number
  /** The fraction of the period in which the queue was not empty, by the limit that held back its head. */
  readonly heldByConcurrency: number
  readonly heldByBudget: number
  readonly queueDepthMax: number
  readonly outputTokensPerSecond: number
  readonly moments: readonly Moment[]
  /** null: there were no lines to run. All figures above but those of use are of the other requests. */
  readonly batch: BatchReport | null
}

const momentCount = 60
const DAY_MS = 86_400_000

/**
 * Runs the real state machine in virtual time, in front of an engine that is modelled only by its speed. The limit for
 * one workspace is not simulated.
 */
export function simulateQueue({ limits, engine, arrivals, durationMs, batch }: QueueLoad): QueueReport {
  const lane = openLane<SimulatedRequest>({ ...limits, maxRequestsPerWorkspace: undefined }, decided, (line) =>
    aborted.push(line),
  )
  const waits: number[] = []
  const answers: number[] = []
  let requests = 0
  let admittedAtOnce = 0
  const refused = { queue_full: 0, overloaded: 0, too_large: 0, workspace_queue_full: 0, closed: 0 }
  const use = measureUse(durationMs, limits)
  const inEngine: SimulatedRequest[] = []
  /** Lines that gave way. They leave the lane when it has decided. */
  const aborted: SimulatedRequest[] = []
  let linesLeft = batch?.lines ?? 0
  /** The lane has the next line already: there is never more than one that waits. */
  let isLineWaiting = false
  const lines = { ended: 0, preempted: 0 }
  let nowMs = 0
  /** Work done so far by a request that has been in the engine from the start, in milliseconds at full speed. */
  let progressMs = 0

  const slowness = (): number => 1 + engine.slowdown * Math.max(0, inEngine.length - 1)

  function nextFinishMs(): number {
    const next = inEngine.at(-1)
    return next === undefined ? Infinity : nowMs + (next.finishesAtMs - progressMs) * slowness()
  }

  function advance(toMs: number): void {
    use.measure(nowMs, toMs, lane.status())
    progressMs += (toMs - nowMs) / slowness()
    nowMs = toMs
  }

  function decided(request: SimulatedRequest, decision: LaneDecision): void {
    if (decision.kind !== 'admitted') {
      refused[decision.kind] += 1
      return
    }
    if (request.tier === 'online') waits.push(decision.waitMs)
    else isLineWaiting = false
    request.finishesAtMs = progressMs + workMs(request, engine)
    insertLatestFirst(inEngine, request)
  }

  function arrive(arrival: Arrival): void {
    requests += 1
    const request = new SimulatedRequest(arrival)
    const decision = lane.arrive(request, nowMs)
    if (decision !== undefined) decided(request, decision)
    runLines()
    if (request.state === 'in_flight') admittedAtOnce += 1
  }

  /** Lines that gave way leave, and others begin while there is room for them. */
  function runLines(): void {
    for (let line = aborted.pop(); line !== undefined; line = aborted.pop()) {
      inEngine.splice(inEngine.indexOf(line), 1)
      lines.preempted += 1
      linesLeft += 1
      lane.leave(line, nowMs)
    }
    if (batch === undefined || nowMs >= durationMs) return
    while (linesLeft > 0 && !isLineWaiting) {
      const line = new SimulatedRequest({ ...batch, atMs: nowMs, maxTokens: batch.outputTokens }, 'batch')
      const decision = lane.arrive(line, nowMs)
      // Too large for what batch work may use, or no line may wait.
      if (decision !== undefined && decision.kind !== 'admitted') return
      linesLeft -= 1
      if (decision === undefined) isLineWaiting = true
      else decided(line, decision)
    }
  }

  function finish(request: SimulatedRequest): void {
    progressMs = request.finishesAtMs
    if (request.tier === 'online') answers.push(nowMs - request.arrivedAtMs)
    else if (nowMs <= durationMs) lines.ended += 1
    use.produced(nowMs, request.outputTokens)
    lane.leave(request, nowMs)
    runLines()
  }

  runLines()
  const upcoming = arrivals[Symbol.iterator]()
  for (let next = upcoming.next(); ;) {
    const arrivalMs = next.done === true ? Infinity : next.value.atMs
    const finishMs = nextFinishMs()
    const deadlineMs = lane.nextDeadlineMs()
    const nextMs = Math.min(arrivalMs, finishMs, deadlineMs)
    if (nextMs === Infinity) break
    advance(nextMs)
    if (nextMs === finishMs) {
      const request = inEngine.pop()
      if (request !== undefined) finish(request)
    } else if (nextMs === deadlineMs) {
      lane.expire(nowMs)
      runLines()
    } else if (next.done !== true) {
      arrive(next.value)
      next = upcoming.next()
    }
  }
  return {
    limits,
    requests,
    admittedAtOnce,
    admittedAfterWait: waits.length - admittedAtOnce,
    queueFull: refused.queue_full,
    overloaded: refused.overloaded,
    tooLarge: refused.too_large,
    waitMs: spread(waits),
    answerMs: spread(answers),
    ...use.report(),
    batch: batch
      ? { lines: lines.ended, linesPerDay: (lines.ended / durationMs) * DAY_MS, preempted: lines.preempted }
      : null,
  }
}

class SimulatedRequest extends Place {
  readonly inputTokens: number
  readonly outputTokens: number
  finishesAtMs = 0

  constructor(arrival: Arrival, tier: Tier = 'online') {
    super(arrival.inputTokens + arrival.maxTokens, '', tier)
    this.inputTokens = arrival.inputTokens
    this.outputTokens = Math.min(arrival.outputTokens, arrival.maxTokens)
  }
}

function workMs({ inputTokens, outputTokens }: SimulatedRequest, engine: EngineSpeed): number {
  return (inputTokens / engine.prefillTokensPerSecond + outputTokens / engine.tokensPerSecond) * 1000
}

/** Keeps the next request to finish at the end of the list. */
function insertLatestFirst(list: SimulatedRequest[], request: SimulatedRequest): void {
  let low = 0
  let high = list.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (list[middle]!.finishesAtMs > request.finishesAtMs) low = middle + 1
    else high = middle
  }
  list.splice(low, 0, request)
}

function spread(values: number[]): Spread | null {
  if (values.length === 0) return null
  const sorted = Float64Array.from(values).sort()
  const at = (share: number): number => sorted[Math.floor(sorted.length * share)]!
  const mean = sorted.reduce((sum, value) => sum + value, 0) / sorted.length
  return { mean, p50: at(0.5), p90: at(0.9), p95: at(0.95), p99: at(0.99), max: sorted.at(-1)! }
}

/** Measures the utilisation of a lane over time. */
function measureUse(durationMs: number, limits: LaneLimits) {
  const momentMs = durationMs / momentCount
  const sums = Array.from({ length: momentCount }, () => ({ inFlightRequests: 0, committedTokens: 0, queueDepth: 0 }))
  let heldByConcurrencyMs = 0
  let heldByBudgetMs = 0
  let queueDepthMax = 0
  let outputTokens = 0

  function measure(fromMs: number, toMs: number, status: Moment): void {
    queueDepthMax = Math.max(queueDepthMax, status.queueDepth)
    const untilMs = Math.min(toMs, durationMs)
    if (untilMs <= fromMs) return
    if (status.queueDepth > 0) {
      if (status.inFlightRequests >= limits.maxConcurrentRequests) heldByConcurrencyMs += untilMs - fromMs
      else heldByBudgetMs += untilMs - fromMs
    }
    const first = Math.floor(fromMs / momentMs)
    const last = Math.min(Math.floor(untilMs / momentMs), momentCount - 1)
    for (let index = first; index <= last; index += 1) {
      const sum = sums[index]!
      const sharedMs = Math.min(untilMs, (index + 1) * momentMs) - Math.max(fromMs, index * momentMs)
      sum.inFlightRequests += status.inFlightRequests * sharedMs
      sum.committedTokens += status.committedTokens * sharedMs
      sum.queueDepth += status.queueDepth * sharedMs
    }
  }

  function report() {
    const moments = sums.map((sum) => ({
      inFlightRequests: sum.inFlightRequests / momentMs,
      committedTokens: sum.committedTokens / momentMs,
      queueDepth: sum.queueDepth / momentMs,
    }))
    const mean = (key: keyof Moment): number => moments.reduce((sum, moment) => sum + moment[key], 0) / momentCount
    return {
      concurrencyUse: share(mean('inFlightRequests'), limits.maxConcurrentRequests),
      budgetUse: share(mean('committedTokens'), limits.tokenBudget),
      heldByConcurrency: heldByConcurrencyMs / durationMs,
      heldByBudget: heldByBudgetMs / durationMs,
      queueDepthMax,
      outputTokensPerSecond: (outputTokens / durationMs) * 1000,
      moments,
    }
  }

  return {
    measure,
    produced(atMs: number, tokens: number): void {
      if (atMs <= durationMs) outputTokens += tokens
    },
    report,
  }
}

function share(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole
}
