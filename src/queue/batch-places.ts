import { BatchQueue, LinkedList, type WaitingPlace } from './batch-queue.ts'

/** What the batch places of a lane may use, and which of them give way to online places that wait. Pure, as lane.ts is; design.md explains the rules. */

/** The limits of a lane that the rules for batch places need. */
export interface CapacityLimits {
  readonly tokenBudget: number
  readonly maxConcurrentRequests: number
  readonly maxQueueDepth: number
  /** What batch places may use. What is not set has its default. */
  readonly batch?: { readonly [Name in keyof BatchLimits]?: BatchLimits[Name] | undefined } | undefined
}

export interface Capacity {
  readonly requests: number
  readonly tokens: number
}

export interface BatchLimits {
  /** How many places stay free for online requests when a batch place is admitted. By default 1, and 0 in a lane with one place. */
  readonly reserveConcurrent: number
  /** How many tokens stay free then. By default a tenth of the budget. */
  readonly reserveTokens: number
  /** The part of the concurrency and of the budget that batch places may have together, from 0 to 1. 0 pauses them; 1 by default. */
  readonly maxShare: number
  /** Whether batch places give way to online places that would have to wait. By default they do. */
  readonly preempt: boolean
  /** How many batch places may wait. By default as many as online places. */
  readonly maxQueueDepth: number
}

/** The limits for batch places, with defaults for what is not set. */
export function batchLimitsOf({
  tokenBudget,
  maxConcurrentRequests,
  maxQueueDepth,
  batch,
}: CapacityLimits): BatchLimits {
  return {
    reserveConcurrent: batch?.reserveConcurrent ?? (maxConcurrentRequests > 1 ? 1 : 0),
    reserveTokens: batch?.reserveTokens ?? Math.floor(tokenBudget / 10),
    maxShare: batch?.maxShare ?? 1,
    preempt: batch?.preempt ?? true,
    maxQueueDepth: batch?.maxQueueDepth ?? maxQueueDepth,
  }
}

/** The most that batch places may have in flight, together and beside online places. */
export interface BatchRoom {
  readonly ofBatch: Capacity
  readonly ofLane: Capacity
}

export function batchRoomOf(limits: CapacityLimits): BatchRoom {
  const { tokenBudget, maxConcurrentRequests } = limits
  const { reserveConcurrent, reserveTokens, maxShare } = batchLimitsOf(limits)
  // A share such as 0.57 has no exact value: without the rounding, 0.57 of 100 would be 56.
  const share = (whole: number): number => Math.floor(Number((whole * maxShare).toFixed(6)))
  return {
    ofBatch: { requests: share(maxConcurrentRequests), tokens: share(tokenBudget) },
    ofLane: { requests: maxConcurrentRequests - reserveConcurrent, tokens: tokenBudget - reserveTokens },
  }
}

/** The most tokens that one batch place may cost. */
export function batchTokensOf(limits: CapacityLimits): number {
  const { ofBatch, ofLane } = batchRoomOf(limits)
  return Math.min(ofBatch.tokens, ofLane.tokens)
}

export interface BatchStatus {
  readonly inFlightRequests: number
  readonly committedTokens: number
  readonly queueDepth: number
}

export interface BatchPlace<T> extends WaitingPlace<T> {
  readonly cost: number
  /** Of a batch place in flight. Preempted: its engine call is being aborted, and its charge stays until it leaves. */
  mark: 'none' | 'preemptible' | 'preempted'
  /** Of an online place that waits: it fits once all preempted places have left. */
  isCovered: boolean
}

/** The batch places of a lane: how much they have, and what they may have. */
export class BatchPlaces<T extends BatchPlace<T>> {
  readonly queue = new BatchQueue<T>()
  readonly preemption = new Preemption<T>()
  limits: BatchLimits
  #room: BatchRoom
  #tokenBudget: number
  #mostTokens: number
  requests = 0
  tokens = 0

  constructor(limits: CapacityLimits) {
    this.limits = batchLimitsOf(limits)
    this.#room = batchRoomOf(limits)
    this.#tokenBudget = limits.tokenBudget
    this.#mostTokens = batchTokensOf(limits)
  }

  setLimits(limits: CapacityLimits): void {
    this.limits = batchLimitsOf(limits)
    this.#room = batchRoomOf(limits)
    this.#tokenBudget = limits.tokenBudget
    this.#mostTokens = batchTokensOf(limits)
    this.preemption.uncoverAll()
  }

  charge(place: T): void {
    this.requests += 1
    this.tokens += place.cost
    this.preemption.started(place)
  }

  release(place: T): void {
    this.requests -= 1
    this.tokens -= place.cost
    this.preemption.ended(place)
  }

  /** Whether the reserve stays free beside what is in flight, and batch places have at most their share. */
  hasRoomFor({ cost }: T, inFlightRequests: number, committedTokens: number): boolean {
    const { ofLane, ofBatch } = this.#room
    return (
      inFlightRequests < ofLane.requests &&
      committedTokens + cost <= ofLane.tokens &&
      this.requests < ofBatch.requests &&
      this.tokens + cost <= ofBatch.tokens
    )
  }

  /** Whether the place can never be admitted. While batch places may use no tokens at all they are paused, and wait. */
  isTooLarge({ cost }: T): boolean {
    return cost > this.#tokenBudget || (this.#mostTokens > 0 && cost > this.#mostTokens)
  }

  status(): BatchStatus {
    return { inFlightRequests: this.requests, committedTokens: this.tokens, queueDepth: this.queue.depth }
  }
}

class Sum implements Capacity {
  requests = 0
  tokens = 0

  add({ cost }: { readonly cost: number }): void {
    this.requests += 1
    this.tokens += cost
  }

  subtract({ cost }: { readonly cost: number }): void {
    this.requests -= 1
    this.tokens -= cost
  }
}

class Preemption<T extends BatchPlace<T>> {
  /** In the order of their start. */
  readonly #places = new LinkedList<T>()
  readonly #preemptible = new Sum()
  readonly #leaving = new Sum()
  readonly #covered = new Sum()
  /** Covered places are the front of the online queue, up to this one. */
  #lastCovered: T | undefined = undefined

  get coveredRequests(): number {
    return this.#covered.requests
  }

  started(place: T): void {
    place.mark = 'preemptible'
    this.#places.append(place)
    this.#preemptible.add(place)
  }

  /** Whether the place cannot be preempted any more. */
  keep(place: T): boolean {
    if (place.mark === 'preemptible') this.#remove(place)
    return place.mark === 'none'
  }

  ended(place: T): void {
    if (place.mark === 'preemptible') this.#remove(place)
    if (place.mark === 'preempted') this.#leaving.subtract(place)
    place.mark = 'none'
  }

  #remove(place: T): void {
    this.#places.remove(place)
    this.#preemptible.subtract(place)
    place.mark = 'none'
  }

  /** Whether an arrival behind this tail of the queue would be covered. */
  wouldCover(place: T, tail: T | undefined, free: Capacity, mayPreempt: boolean): boolean {
    return (
      (tail === undefined || tail.isCovered) && this.#hasRoom(place, free, mayPreempt ? this.#preemptible : nothing)
    )
  }

  /**
   * Covers places of the online queue, from the head on, and preempts as many batch places for each as it needs to fit,
   * the youngest first. None if even all of them would not be enough.
   */
  cover(head: T, free: Capacity, mayPreempt: boolean, preempt: (place: T) => void): void {
    let place = this.#lastCovered === undefined ? head : this.#lastCovered.behind
    while (place !== undefined && this.#hasRoom(place, free, mayPreempt ? this.#preemptible : nothing)) {
      while (!this.#hasRoom(place, free, nothing)) this.#preemptYoungest(preempt)
      place.isCovered = true
      this.#covered.add(place)
      this.#lastCovered = place
      place = place.behind
    }
  }

  #hasRoom({ cost }: T, free: Capacity, more: Capacity): boolean {
    return (
      free.requests + this.#leaving.requests + more.requests > this.#covered.requests &&
      free.tokens + this.#leaving.tokens + more.tokens >= this.#covered.tokens + cost
    )
  }

  #preemptYoungest(preempt: (place: T) => void): void {
    const youngest = this.#places.last!
    this.#remove(youngest)
    youngest.mark = 'preempted'
    this.#leaving.add(youngest)
    preempt(youngest)
  }

  /** The place is about to leave the queue. */
  uncover(place: T): void {
    if (!place.isCovered) return
    place.isCovered = false
    this.#covered.subtract(place)
    if (this.#lastCovered === place) this.#lastCovered = place.ahead
  }

  /** After a change of limits, what was covered may not fit any more. */
  uncoverAll(): void {
    while (this.#lastCovered !== undefined) this.uncover(this.#lastCovered)
  }
}

const nothing: Capacity = { requests: 0, tokens: 0 }
