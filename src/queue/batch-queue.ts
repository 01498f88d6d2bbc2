/** Batch places of one lane: those that wait, and those that can be preempted. Pure, as lane.ts is; design.md explains the rules. */

export interface Linked<T> {
  ahead: T | undefined
  behind: T | undefined
}

/** A list through the items themselves. An item is in one list at a time. */
export class LinkedList<T extends Linked<T>> {
  first: T | undefined = undefined
  last: T | undefined = undefined

  append(item: T): void {
    item.ahead = this.last
    if (this.last === undefined) this.first = item
    else this.last.behind = item
    this.last = item
  }

  remove(item: T): void {
    const { ahead, behind } = item
    if (ahead === undefined) this.first = behind
    else ahead.behind = behind
    if (behind === undefined) this.last = ahead
    else behind.ahead = ahead
    item.ahead = item.behind = undefined
  }
}

export interface WaitingPlace<T> extends Linked<T> {
  readonly workspace: string
  /** Infinity: waits as long as it takes. */
  dueAtMs: number
  /** Its index in the heap of deadlines. */
  dueIndex: number
}

/** The places of one workspace, which takes its turn among the others. */
class Turn<T extends WaitingPlace<T>> implements Linked<Turn<T>> {
  ahead: Turn<T> | undefined = undefined
  behind: Turn<T> | undefined = undefined
  readonly places = new LinkedList<T>()
}

/** Places that wait: one of each workspace in turn, and those of a workspace in order of arrival. */
export class BatchQueue<T extends WaitingPlace<T>> {
  depth = 0
  readonly #turns = new LinkedList<Turn<T>>()
  readonly #turnOf = new Map<string, Turn<T>>()
  /** A binary heap: the place that expires first is at the root. */
  readonly #due: T[] = []

  /** The place whose turn it is. */
  head(): T | undefined {
    return this.#turns.first?.places.first
  }

  earliest(): T | undefined {
    return this.#due[0]
  }

  add(place: T): void {
    let turn = this.#turnOf.get(place.workspace)
    if (turn === undefined) {
      turn = new Turn()
      this.#turnOf.set(place.workspace, turn)
      this.#turns.append(turn)
    }
    turn.places.append(place)
    this.depth += 1
    if (place.dueAtMs < Infinity) this.#moveUp(place, this.#due.length)
  }

  /** Removes the head, and passes the turn on. */
  take(head: T): void {
    const turn = this.#turnOf.get(head.workspace)
    this.remove(head)
    if (turn?.places.first === undefined) return
    this.#turns.remove(turn)
    this.#turns.append(turn)
  }

  remove(place: T): void {
    const turn = this.#turnOf.get(place.workspace)
    if (turn === undefined) return
    turn.places.remove(place)
    this.depth -= 1
    if (turn.places.first === undefined) {
      this.#turns.remove(turn)
      this.#turnOf.delete(place.workspace)
    }
    if (place.dueAtMs < Infinity) this.#forgetDeadline(place)
  }

  #forgetDeadline({ dueIndex }: T): void {
    const last = this.#due.pop()
    if (last === undefined || dueIndex === this.#due.length) return
    this.#moveUp(last, dueIndex)
    this.#moveDown(last)
  }

  #moveUp(place: T, from: number): void {
    let index = from
    while (index > 0) {
      const parent = this.#due[(index - 1) >> 1]!
      if (parent.dueAtMs <= place.dueAtMs) break
      this.#put(parent, index)
      index = (index - 1) >> 1
    }
    this.#put(place, index)
  }

  #moveDown(place: T): void {
    let index = place.dueIndex
    for (;;) {
      const [left, right] = [this.#due[2 * index + 1], this.#due[2 * index + 2]]
      const child = right !== undefined && left !== undefined && right.dueAtMs < left.dueAtMs ? right : left
      if (child === undefined || child.dueAtMs >= place.dueAtMs) break
      const next = child.dueIndex
      this.#put(child, index)
      index = next
    }
    this.#put(place, index)
  }

  #put(place: T, index: number): void {
    this.#due[index] = place
    place.dueIndex = index
  }
}
