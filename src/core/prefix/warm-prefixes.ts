import { spread, textHash, type PromptBlocks } from './prompt-blocks.ts'

/** What was sent to each address of an engine, and so may be in its cache. `choose.ts` goes by it. */
export interface WarmPrefixes {
  readonly addresses: readonly WarmAddress[]
  /** What the calls for a prefix have lost by now because it is warm at too few addresses, by the key of its last block. */
  readonly debts: Map<number, number>
  /** The first blocks of conversations of which other replicas of the service send a part. */
  readonly divided: Set<number>
  /** The share of the latest prompts that began like an earlier one. */
  recurrence: number
  /** How many prompts the usual loads are an average of. */
  loadsSeen: number
}

/** What one address was sent, as far as its cache may still have it. */
interface WarmAddress {
  readonly hash: number
  /** How many characters of prompts its cache holds. */
  capacity: number
  held: number
  /**
   * The characters of each block by its key, the one used longest ago first. A block is always used before the blocks
   * that it follows, so it is dropped before them too, and what is left of a prompt is its beginning.
   */
  readonly blocks: Map<number, number>
  /** The calls in flight when the latest prompts came, as an average. */
  usualLoad: number
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
  /** The new debt of a prefix; undefined: all are as they were. */
  readonly debt: { readonly key: number; readonly characters: number } | undefined
  /** Another replica has sent the turn before. */
  readonly isDivided: boolean
  /** The calls in flight at each address; undefined: not to be used. */
  readonly loads: readonly (number | undefined)[]
}

/** Beyond this, blocks are forgotten however large the caches are. A block takes about 100 bytes here. */
const MAX_BLOCKS = 1_000_000
/** About this many prompts say how often a beginning recurs. */
const PROMPTS_REMEMBERED = 50
/** About this many prompts say how busy an address usually is. */
const LOADS_REMEMBERED = 100
/** Prefixes with debts, and divided conversations. */
const MAX_NOTES = 10_000
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
      usualLoad: 0,
      isTelling: false,
      surprises: 0,
    })),
    debts: new Map(),
    divided: new Set(),
    // As long as nothing is known, replicas should agree.
    recurrence: 1,
    loadsSeen: 0,
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

/** Remembers that an address is sent a prompt. */
export function sent(state: WarmPrefixes, { index, deepest, debt, isDivided, loads }: Choice, prompt: Prompt): void {
  state.recurrence += ((deepest > 0 ? 1 : 0) - state.recurrence) / PROMPTS_REMEMBERED
  state.loadsSeen = Math.min(state.loadsSeen + 1, LOADS_REMEMBERED)
  for (const [at, it] of state.addresses.entries()) it.usualLoad += ((loads[at] ?? 0) - it.usualLoad) / state.loadsSeen
  const address = state.addresses[index]
  const first = prompt.keys[0]
  if (!address || first === undefined) return
  const { blocks } = address
  if (debt) owe(state.debts, debt.key, debt.characters)
  if (isDivided) {
    state.divided.add(first)
    if (state.divided.size > MAX_NOTES) state.divided.clear()
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

function owe(debts: Map<number, number>, key: number, characters: number): void {
  debts.delete(key)
  if (characters > 0) debts.set(key, characters)
  for (const oldest of debts.keys()) {
    if (debts.size <= MAX_NOTES) break
    debts.delete(oldest)
  }
}

/** The share of a prompt that its first blocks make up. */
export function shareOf(prompt: Prompt, depth: number): number {
  return charactersIn(prompt, depth) / Math.max(1, prompt.characters)
}

/** The cache of an address holds so many characters. What is too much is forgotten with the next prompt. */
export function resize(state: WarmPrefixes, index: number, capacity: number): void {
  const address = state.addresses[index]
  if (address) address.capacity = capacity
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
export function warmDepth({ blocks }: WarmAddress, { keys }: Prompt): number {
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

/** The characters of the first blocks of a prompt. */
export function charactersIn({ ends }: Prompt, depth: number): number {
  return depth === 0 ? 0 : ends[depth - 1]!
}
