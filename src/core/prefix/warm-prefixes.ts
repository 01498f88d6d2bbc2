import { spread, textHash, type PromptBlocks } from './prompt-blocks.ts'

/**
 * Chooses the address of an engine that has least to do for a prompt, from what was sent where. The cache of an engine
 * keeps the beginnings of prompts, so a prompt that begins like an earlier one costs less where the earlier one went.
 *
 * docs/decisions/2026-11-16-warm-prefixes.md says why it is done this way.
 */
export interface WarmPrefixes {
  readonly addresses: readonly WarmAddress[]
  /** What the calls for a prefix have lost by now because it is warm at too few addresses, by the key of its last block. */
  readonly debts: Map<number, number>
  /** The first blocks of conversations of which other replicas of the service send a part. */
  readonly divided: Set<number>
}

/** What one address was sent, as far as its cache may still have it. */
interface WarmAddress {
  readonly hash: number
  /** How many characters of prompts its cache holds. */
  readonly capacity: number
  held: number
  /**
   * The characters of each block by its key, the one used longest ago first. A block is always used before the blocks
   * that it follows, so it is dropped before them too, and what is left of a prompt is its beginning.
   */
  readonly blocks: Map<number, number>
  /** Whether its engine has ever said that something was cached. Not every engine does. */
  isTelling: boolean
  /** How often in a row nothing was cached of a prompt that should have been. */
  surprises: number
}

/** The blocks of a prompt, for one workspace. */
export interface Prompt {
  /** One for each block, unique to the prompt up to its end. */
  readonly keys: readonly number[]
  /** The characters of the prompt up to the end of each block. */
  readonly ends: readonly number[]
  readonly characters: number
  /** The blocks that the conversation began with, and those of the turn before, as in `PromptBlocks`. */
  readonly opening: number
  readonly previous: number
}

/** An address for a prompt. */
export interface Choice {
  readonly index: number
  /** The blocks of the prompt that should be in its cache, and the most that any address has. */
  readonly depth: number
  readonly deepest: number
  /** The new debt of the prefix; undefined: it is as it was. */
  readonly debt: number | undefined
  /** Another replica has sent the turn before. */
  readonly isDivided: boolean
}

/** Beyond this, blocks are forgotten however large the caches are. A block takes about 100 bytes here. */
const MAX_BLOCKS = 1_000_000
const MAX_DEBTS = 10_000
/**
 * What a request costs besides its input, in characters: its place in the batch, and the last tokens, which no cache
 * has. Without it, a prompt that is cached as a whole would cost nothing, however busy its engine is.
 */
const REQUEST_CHARACTERS = 1024
/** An address with more than this share of the average load, and some for chance, gets no more. */
const MAX_SHARE_OF_LOAD = 1.25
/** So few calls do not slow each other down. */
const FEW_CALLS = 4
/** Equally warm addresses are as good as the best one up to this many calls more, or one more than the average. */
const LOAD_TOLERANCE = 2
/** The share of a conversation's opening that makes up most of it. */
const MOST = 0.5
/** The cache of an engine that was restarted is empty. One surprise may be a prompt that was evicted. */
const SURPRISES_UNTIL_FORGOTTEN = 2
/** A smaller part of a prompt may be missing for many reasons. */
const SURPRISING_SHARE = 0.5

export function warmPrefixes(names: readonly string[], capacity: number): WarmPrefixes {
  return {
    addresses: names.map((name) => ({
      hash: textHash(name),
      capacity,
      held: 0,
      blocks: new Map(),
      isTelling: false,
      surprises: 0,
    })),
    debts: new Map(),
    divided: new Set(),
  }
}

/** The blocks of a prompt with another salt have other keys, so that nothing is known about them. */
export function saltedPrompt({ blocks, characters, opening, previous }: PromptBlocks, salt: string): Prompt {
  const hash = textHash(salt)
  return {
    // 52 bits, which a number holds exactly.
    keys: blocks.map(({ first, second }) => spread(first ^ hash) * 2 ** 20 + (spread(second + hash) >>> 12)),
    ends: blocks.map(({ end }) => end),
    characters,
    opening,
    previous,
  }
}

/**
 * The address where `uncached input × (calls in flight + 1)` is least. `loads` has the calls in flight at each address;
 * undefined: not to be used. Returns undefined if there is no address to use.
 */
export function choose(
  state: WarmPrefixes,
  prompt: Prompt,
  loads: readonly (number | undefined)[],
): Choice | undefined {
  const average = averageOf(loads)
  // How much loads differ by chance. A replica of the service sees only its own calls, which are few.
  const chance = Math.sqrt(average)
  const most = Math.max(FEW_CALLS, average * MAX_SHARE_OF_LOAD + chance)
  const open: Open[] = []
  let deepest = 0
  for (const [index, address] of state.addresses.entries()) {
    const load = loads[index]
    if (load === undefined) continue
    const depth = warmDepth(address, prompt)
    deepest = Math.max(deepest, depth)
    // Adding the average makes differences by chance count for less.
    if (load <= most) open.push({ index, load, depth, work: workAt(prompt, depth) * (load + 1 + average) })
  }
  const best = leastOf(open, ({ work }) => work)
  const idlest = leastOf(open, ({ load }) => load)
  if (!best || !idlest) return undefined
  const extraCalls = best.load - idlest.load
  let debt: number | undefined
  if (idlest.depth < best.depth && extraCalls > 0) {
    debt = (state.debts.get(prompt.keys[best.depth - 1]!) ?? 0) + workAt(prompt, best.depth) * extraCalls
    const price = (charactersIn(prompt, best.depth) - charactersIn(prompt, idlest.depth)) * (idlest.load + 1)
    if (debt >= price) return { index: idlest.index, depth: idlest.depth, deepest, debt: 0, isDivided: false }
  }
  // This replica knows nothing of the turn before.
  const isDivided = best.depth < prompt.previous
  // It is worth more to find that turn than to have less company.
  const free = isDivided ? open : open.filter(({ load }) => load <= Math.max(best.load + LOAD_TOLERANCE, average + 1))
  const { index, depth } = prompt.previous > 0 && !isDivided ? best : agreedOn(state, prompt, free, best)
  return { index, depth, deepest, debt, isDivided }
}

/** An address that may get the prompt. */
interface Open {
  readonly index: number
  readonly load: number
  readonly depth: number
  readonly work: number
}

/** Which of the addresses every replica would choose, without asking the others. */
function agreedOn(state: WarmPrefixes, prompt: Prompt, free: readonly Open[], best: Open): Open {
  const { keys, opening, previous } = prompt
  // A conversation that other replicas take part in stays where its opening says, even if that is cold at first.
  const isDivided = previous > 0 || state.divided.has(keys[0] ?? -1)
  // Behind a known prefix, it is the conversation that should stay at one address. A prefix that is new goes to one
  // address, whatever follows it.
  const isKnown = charactersIn(prompt, Math.min(best.depth, opening)) >= charactersIn(prompt, opening) * MOST
  const key = keys[isDivided || isKnown ? opening - 1 : best.depth]
  if (key === undefined) return best
  const candidates = isDivided ? free : free.filter(({ depth }) => depth === best.depth)
  const hash = spread(key / 2 ** 20)
  return leastOf(candidates, ({ index }) => spread(hash ^ state.addresses[index]!.hash)) ?? best
}

/** Remembers that an address is sent a prompt. */
export function sent(state: WarmPrefixes, { index, deepest, debt, isDivided }: Choice, prompt: Prompt): void {
  const address = state.addresses[index]
  const first = prompt.keys[0]
  if (!address || first === undefined) return
  const { blocks } = address
  const key = prompt.keys[deepest - 1]
  if (debt !== undefined && key !== undefined) owe(state.debts, key, debt)
  if (isDivided) {
    state.divided.add(first)
    if (state.divided.size > MAX_DEBTS) state.divided.clear()
  }
  for (let block = prompt.keys.length - 1; block >= 0; block--) {
    const characters = charactersIn(prompt, block + 1) - charactersIn(prompt, block)
    if (!blocks.delete(prompt.keys[block]!)) address.held += characters
    blocks.set(prompt.keys[block]!, characters)
  }
  const most = Math.floor(MAX_BLOCKS / state.addresses.length)
  for (const [oldest, characters] of blocks) {
    if (address.held <= address.capacity && blocks.size <= most) break
    blocks.delete(oldest)
    address.held -= characters
  }
}

function owe(debts: Map<number, number>, key: number, debt: number): void {
  debts.delete(key)
  if (debt > 0) debts.set(key, debt)
  for (const oldest of debts.keys()) {
    if (debts.size <= MAX_DEBTS) break
    debts.delete(oldest)
  }
}

/** The share of a prompt that its first blocks make up. */
export function shareOf(prompt: Prompt, depth: number): number {
  return charactersIn(prompt, depth) / Math.max(1, prompt.characters)
}

/** What an address was sent is no longer in its cache. */
export function forget(state: WarmPrefixes, index: number): void {
  const address = state.addresses[index]
  if (!address) return
  address.blocks.clear()
  address.held = 0
  address.surprises = 0
}

/**
 * An engine has answered, and says how many tokens of the prompt were cached. If there were none of a prompt that should
 * have been there, and this happens again, the engine was restarted. Returns whether the engine tells what it has at all.
 */
export function learn(state: WarmPrefixes, choice: Choice, prompt: Prompt, cachedTokens: number): boolean {
  const address = state.addresses[choice.index]
  if (!address) return false
  if (cachedTokens > 0) {
    address.isTelling = true
    address.surprises = 0
    return true
  }
  if (!address.isTelling || shareOf(prompt, choice.depth) < SURPRISING_SHARE) return address.isTelling
  address.surprises++
  if (address.surprises < SURPRISES_UNTIL_FORGOTTEN) return true
  forget(state, choice.index)
  // It has this one, at least.
  sent(state, { ...choice, debt: undefined }, prompt)
  return true
}

/** How many blocks of a prompt, from its beginning, an address was sent before. */
function warmDepth({ blocks }: WarmAddress, { keys }: Prompt): number {
  // What is left of a prompt is its beginning, so the last block can be found by halving.
  let known = 0
  let unknown = keys.length + 1
  while (unknown - known > 1) {
    const middle = (known + unknown) >>> 1
    if (blocks.has(keys[middle - 1]!)) known = middle
    else unknown = middle
  }
  return known
}

function workAt(prompt: Prompt, depth: number): number {
  return prompt.characters - charactersIn(prompt, depth) + REQUEST_CHARACTERS
}

function charactersIn({ ends }: Prompt, depth: number): number {
  return depth === 0 ? 0 : ends[depth - 1]!
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

/** The first item with the least value. */
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
