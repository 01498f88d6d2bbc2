/** Measures admission decisions per second on one core, with a queue of 10,000 requests. */
import { figure } from './figures.ts'
import { memoryAdmission } from '../src/queue/memory.ts'
import { systemClock } from '../src/shared/system-clock.ts'
import { openLane, Place } from '../src/queue/lane.ts'
import type { LaneLimits } from '../src/queue/lane.ts'

const depth = 10_000
const rounds = 1_000_000
const limits: LaneLimits = {
  tokenBudget: 1_000_000,
  maxConcurrentRequests: 256,
  maxQueueDepth: depth,
  maxWaitMs: 120_000,
}

function report(name: string, decisions: number, startedAtMs: number): void {
  const seconds = (performance.now() - startedAtMs) / 1000
  const perSecond = Math.round(decisions / seconds)
  figure(name, { unit: 'million', digits: 1 }, [perSecond / 1e6])
  console.log(`${name.padEnd(50)} ${perSecond.toLocaleString('en-AU').padStart(12)} decisions/s`)
}

/** Each round, one request leaves, the head of the queue is admitted, and a new request joins the tail. */
function releases(): void {
  let nowMs = 0
  const lane = openLane(limits, () => {})
  const places = Array.from({ length: limits.maxConcurrentRequests + depth }, () => new Place(1000, 'acme'))
  for (const place of places) lane.arrive(place, nowMs)
  const startedAtMs = performance.now()
  for (let round = 0; round < rounds; round += 1) {
    nowMs += 0.1
    const oldest = round % places.length
    lane.leave(places[oldest]!, nowMs)
    const place = new Place(1000, 'acme')
    lane.arrive(place, nowMs)
    places[oldest] = place
  }
  report('state machine: release, admit head, queue one', rounds, startedAtMs)
}

/** Nothing is ever admitted: each round, a random queued request is cancelled and a new one joins. */
function cancels(): void {
  const lane = openLane({ ...limits, maxConcurrentRequests: 0 }, () => {})
  const queue = Array.from({ length: depth }, () => new Place(1000, 'acme'))
  for (const place of queue) lane.arrive(place, 0)
  const startedAtMs = performance.now()
  for (let round = 0; round < rounds; round += 1) {
    const index = (round * 7919) % depth
    lane.leave(queue[index]!, 0)
    const place = new Place(1000, 'acme')
    lane.arrive(place, 0)
    queue[index] = place
  }
  report('state machine: cancel in the middle, queue one', rounds, startedAtMs)
}

/** Nothing is ever admitted: every request waits until the maximum wait expires. */
function expiries(): void {
  let expired = 0
  const lane = openLane({ ...limits, maxConcurrentRequests: 0 }, () => {
    expired += 1
  })
  const gapMs = limits.maxWaitMs / depth
  let nowMs = 0
  const startedAtMs = performance.now()
  for (let round = 0; round < rounds; round += 1) {
    nowMs += gapMs
    lane.arrive(new Place(1000, 'acme'), nowMs)
  }
  report('state machine: expire, queue one', expired, startedAtMs)
}

function refusals(): void {
  const lane = openLane({ ...limits, maxConcurrentRequests: 0 }, () => {})
  for (let filled = 0; filled < depth; filled += 1) lane.arrive(new Place(1000, 'acme'), 0)
  const startedAtMs = performance.now()
  for (let round = 0; round < rounds; round += 1) lane.arrive(new Place(1000, 'acme'), 0)
  report('state machine: queue_full', rounds, startedAtMs)
}

function adapter(): void {
  const admission = memoryAdmission(systemClock)
  admission.setLanes(new Map([['lane', limits]]))
  let admitted = 0
  const decided = (): void => {
    admitted += 1
  }
  const tickets = Array.from({ length: limits.maxConcurrentRequests + depth }, () =>
    admission.enter({ lane: 'lane', workspace: 'acme', cost: 1000 }, decided),
  )
  const admittedBefore = admitted
  const startedAtMs = performance.now()
  for (let round = 0; round < rounds; round += 1) {
    const oldest = round % tickets.length
    tickets[oldest]!.leave()
    tickets[oldest] = admission.enter({ lane: 'lane', workspace: 'acme', cost: 1000 }, decided)
  }
  report('in-memory adapter: leave, admit head, queue one', admitted - admittedBefore, startedAtMs)
}

console.log(`queue depth ${depth.toLocaleString('en-AU')}, ${rounds.toLocaleString('en-AU')} rounds each`)
for (const measure of [releases, cancels, expiries, refusals, adapter]) measure()
