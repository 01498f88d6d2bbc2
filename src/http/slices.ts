import { CallerLeft } from '../core/errors.ts'
import type { WaitingWork } from '../core/sliced-work.ts'

/**
 * Runs the work of large requests in slices, so that no body holds up the other callers. The first slice runs at once;
 * most requests need no other. After that, all requests together get one slice in each turn of the event loop. Owners
 * take turns, and the oldest request of an owner goes first, so that few of them are half done at any time.
 */
const SLICE_MS = 8
/** Small requests need no more steps than this. They never wait for a turn, even on a slow machine: others would overtake. */
const LEAST_STEPS = 8

/** Whom the work is for. */
interface Client {
  readonly owner: string
  readonly isGone: boolean
}

/**
 * Returns the result itself if the first slice is enough: a promise for each small request would cost more than its work.
 * Rejects with CallerLeft if the caller goes away before the work is done.
 */
export function inSlices<Result>(client: Client, work: WaitingWork<Result>): Result | Promise<Result> {
  const step = slice(work)
  return step.done ? step.value : otherSlices(client, work, step.value)
}

async function otherSlices<Result>(
  client: Client,
  work: WaitingWork<Result>,
  first: void | Promise<unknown>,
): Promise<Result> {
  const age = nextAge++
  for (let awaited = first; ;) {
    if (awaited) await awaited
    else await turn(client.owner, age)
    if (client.isGone) throw new CallerLeft()
    const step = slice(work)
    if (step.done) return step.value
    awaited = step.value
  }
}

/** Goes on until the time is over, or until the work has to wait for a promise, or is done. */
function slice<Result>(work: WaitingWork<Result>): IteratorResult<void | Promise<unknown>, Result> {
  const until = performance.now() + SLICE_MS
  for (let steps = 1; ; steps++) {
    const step = work.next()
    if (step.done || step.value || (steps >= LEAST_STEPS && performance.now() >= until)) return step
  }
}

interface Waiting {
  readonly age: number
  go(): void
}

// One queue for the process, because it has one event loop.
const waiting = new Map<string, Waiting[]>()
let nextAge = 0
let isScheduled = false

function turn(owner: string, age: number): Promise<void> {
  return new Promise((go) => {
    const own = waiting.get(owner) ?? []
    own.push({ age, go })
    waiting.set(owner, own)
    schedule()
  })
}

function schedule(): void {
  if (isScheduled || waiting.size === 0) return
  isScheduled = true
  setImmediate(() => {
    isScheduled = false
    giveTurn()
    schedule()
  })
}

/** To the owner whose last turn is longest ago, which is the first in the map. */
function giveTurn(): void {
  for (const [owner, own] of waiting) {
    waiting.delete(owner)
    const oldest = own.reduce((first, it) => (it.age < first.age ? it : first))
    const others = own.filter((it) => it !== oldest)
    if (others.length > 0) waiting.set(owner, others)
    oldest.go()
    return
  }
}
