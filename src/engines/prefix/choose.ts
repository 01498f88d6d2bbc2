import { spread } from './prompt-blocks.ts'
import { charactersOfBlocks, warmDepth, type Choice, type Prompt, type WarmPrefixes } from './warm-prefixes.ts'

/**
 * Chooses the address of an engine with the least work for a prompt, by what was sent where. The cache of an engine
 * keeps prefixes of prompts, so a prompt that begins like an earlier one costs less at the address of the earlier one.
 *
 * docs/decisions/2026-11-16-warm-prefixes.md explains why it is done this way.
 */

/**
 * The cost of a request besides its input, in characters: its place in the batch, and the last tokens, which are never
 * cached. Without it, a fully cached prompt would cost nothing, however busy its engine is.
 */
const REQUEST_CHARACTERS = 1024
/** An address with more than this multiple of the average load, plus some for random variation, gets no more calls. */
const MAX_SHARE_OF_LOAD = 1.25
/** This few calls do not slow each other down. */
const FEW_CALLS = 4
/**
 * Equally warm addresses count as equal to the best one up to this many additional calls, or one more than the average.
 */
const LOAD_TOLERANCE = 2
/** The share of a conversation's opening that counts as most of it. */
const MOST = 0.5

/**
 * The address where `uncached input × (calls in flight + 1)` is lowest. `loads` has the calls in flight at each
 * address; undefined: not to be used. Returns undefined if there is no address to use.
 */
export function choose(
  state: WarmPrefixes,
  prompt: Prompt,
  loads: readonly (number | undefined)[],
): Choice | undefined {
  const average = averageOf(loads)
  // The random variation of loads. A replica of the service sees only its own calls, which are few.
  const chance = Math.sqrt(average)
  const most = Math.max(FEW_CALLS, average * MAX_SHARE_OF_LOAD + chance)
  const open: Open[] = []
  let deepest = 0
  for (const [index, address] of state.addresses.entries()) {
    const load = loads[index]
    if (load === undefined) continue
    const depth = warmDepth(address, prompt)
    deepest = Math.max(deepest, depth)
    // Adding the average reduces the weight of random differences.
    if (load <= most) open.push({ index, load, depth, work: workAt(prompt, depth) * (load + 1 + average) })
  }
  const best = leastOf(open, ({ work }) => work)
  const idlest = leastOf(open, ({ load }) => load)
  if (!best || !idlest) return undefined
  // A single difference may be random. One that has lasted exists because the idle address lacks the requested prefix.
  const extraCalls = Math.min(best.load - idlest.load, usualLoad(state, best) - usualLoad(state, idlest))
  let debt: Choice['debt']
  // Then the best one knows more of the prompt.
  if (extraCalls > 0) {
    // As in the ski rental problem: by now, waiting at a busy address has cost as much as computing the prefix again.
    const key = prompt.keys[best.depth - 1]!
    const owed = (state.debts.get(key) ?? 0) + workAt(prompt, best.depth) * extraCalls
    const price =
      (charactersOfBlocks(prompt, best.depth) - charactersOfBlocks(prompt, idlest.depth)) * (idlest.load + 1)
    const isDue = owed >= price
    debt = { key, characters: isDue ? 0 : owed }
    if (isDue) return { index: idlest.index, depth: idlest.depth, deepest, debt, isDivided: false, loads }
  }
  // This replica does not know the previous turn.
  const isDivided = best.depth < prompt.previous
  // Another replica may know a prefix that this one does not, so agreeing on its address is worth more.
  const usualMost = average + (knowsMost(prompt, best) ? 1 : Math.max(1, chance))
  // If prompts hardly ever share a prefix, nothing is gained by agreeing.
  const tolerance = Math.max(LOAD_TOLERANCE, usualMost - best.load) * Math.min(1, state.recurrence * 2)
  // Finding that turn is worth more than a less busy address.
  const free = isDivided ? open : open.filter(({ load }) => load <= best.load + tolerance)
  const { index, depth } = prompt.previous > 0 && !isDivided ? best : agreedOn(state, prompt, free, best)
  return { index, depth, deepest, debt, isDivided, loads }
}

/** An address that may get the prompt. */
interface Open {
  readonly index: number
  readonly load: number
  readonly depth: number
  readonly work: number
}

/** The address that every replica would choose, without communication. */
function agreedOn(state: WarmPrefixes, prompt: Prompt, free: readonly Open[], best: Open): Open {
  const { keys, opening, previous } = prompt
  // A conversation that other replicas take part in stays where its opening points, even if that address is cold at
  // first.
  const isDivided = previous > 0 || state.divided.has(keys[0] ?? -1)
  // After a known prefix, the conversation should stay at one address. A new prefix goes to one address, whatever
  // follows it.
  const key = keys[isDivided || knowsMost(prompt, best) ? opening - 1 : best.depth]
  if (key === undefined) return best
  const candidates = isDivided ? free : free.filter(({ depth }) => depth === best.depth)
  const hash = spread(key / 2 ** 20)
  return leastOf(candidates, ({ index }) => spread(hash ^ state.addresses[index]!.hash)) ?? best
}

/** Whether an address has most of the conversation's opening. */
function knowsMost(prompt: Prompt, { depth }: Open): boolean {
  const { opening } = prompt
  return charactersOfBlocks(prompt, Math.min(depth, opening)) >= charactersOfBlocks(prompt, opening) * MOST
}

function usualLoad(state: WarmPrefixes, { index }: Open): number {
  return state.addresses[index]!.usualLoad
}

function workAt(prompt: Prompt, depth: number): number {
  return prompt.characters - charactersOfBlocks(prompt, depth) + REQUEST_CHARACTERS
}

function averageOf(loads: readonly (number | undefined)[]): number {
  let sum = 1
  let count = 0
  for (const load of loads) {
    if (load === undefined) continue
    sum += load
    count++
  }
  return sum / Math.max(1, count)
}

/** The first item with the lowest value. */
function leastOf<Item>(items: readonly Item[], valueOf: (item: Item) => number): Item | undefined {
  let best: Item | undefined
  let least = Infinity
  for (const item of items) {
    const value = valueOf(item)
    if (value >= least) continue
    best = item
    least = value
  }
  return best
}
