import { LinkedList, type Linked } from './batch-queue.ts'

/** Which batch places of a lane give way to online places that wait. Pure, as lane.ts is; design.md explains the rules. */

export interface PreemptionPlace<T> extends Linked<T> {
  readonly cost: number
  /** Of a batch place in flight. Preempted: its engine call is being aborted, and its charge stays until it leaves. */
  mark: 'none' | 'preemptible' | 'preempted'
  /** Of an online place that waits: it fits once all preempted places have left. */
  isCovered: boolean
}

export interface Capacity {
  readonly requests: number
  readonly tokens: number
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

export class Preemption<T extends PreemptionPlace<T>> {
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
