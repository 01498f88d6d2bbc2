import { spread, textHash, type PromptBlocks } from './prompt-blocks.ts'

/** What was sent to each address of an engine, and so may be in its cache. Used by `choose.ts`. */
export interface WarmPrefixes {
  readonly addresses: readonly WarmAddress[]
  /**
   * What the calls for a prefix have lost so far because it is warm at too few addresses, by the key of its last block.
   */
  readonly debts: Map<number, number>
  /** The first blocks of conversations that are partly sent by other replicas of the service. */
  readonly divided: Set<number>
  /** The share of the latest prompts that began like an earlier one. */
  recurrence: number
  /** How many prompts the average loads are computed from. */
  loadsSeen: number
}

/** What was sent to one address, as far as its cache may still have it. */
interface WarmAddress {
  readonly hash: number
  /** How many characters of prompts its cache holds. */
  capacity: number
  held: number
  /**
   * The characters of each block by its key, least recently used first. A block is always marked as used before the
   * blocks that it follows, so it is dropped before them too, and what remains of a prompt is a prefix.
   */
  readonly blocks: Map<number, number>
  /** The average number of calls in flight when the latest prompts arrived. */
  usualLoad: number
  /** Whether its engine has ever reported cached tokens. Not every engine does. */
  isTelling: boolean
  /** How many times in a row nothing of a prompt was cached although it was expected. */
  surprises: number
}

/** The blocks of a prompt, for one workspace. */
export interface Prompt {
  /** One for each block, unique to the prompt up to its end. */
  readonly keys: readonly number[]
  /** The characters of the prompt up to the end of each block. */
  readonly ends: readonly number[]
  readonly characters: number
  /** The blocks of the conversation's opening and of the previous turn, as in `PromptBlocks`. */
  readonly opening: number
  readonly previous: number
}

/** An address for a prompt. */
export interface Choice {
  readonly index: number
  /** The blocks of the prompt that should be in its cache, and the most that any address has. */
  readonly depth: number
  readonly deepest: number
  /** The new debt of a prefix; undefined: no debt changed. */
  readonly debt: { readonly key: number; readonly characters: number } | undefined
  /** Another replica has sent the previous turn. */
  readonly isDivided: boolean
  /** The calls in flight at each address; undefined: not to be used. */
  readonly loads: readonly (number | undefined)[]
}

/** Above this, blocks are dropped however large the caches are. A block takes about 100 bytes here. */
const MAX_BLOCKS = 1_000_000
/** The share of recurring prefixes is computed from about this many prompts. */
const PROMPTS_REMEMBERED = 50
/** The usual load of an address is computed from about this many prompts. */
const LOADS_REMEMBERED = 100
/** Limits prefixes with debts, and divided conversations. */
const MAX_NOTES = 10_000
/** After a restart, the cache of an engine is empty. A single miss may be a prompt that was evicted. */
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

/** With another salt, the blocks of a prompt have different keys, so nothing is known about them. */
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

/** Records that a prompt is sent to an address. */
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
    const characters = charactersOfBlocks(prompt, block + 1) - charactersOfBlocks(prompt, block)
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
  return charactersOfBlocks(prompt, depth) / Math.max(1, prompt.characters)
}

/** Sets how many characters the cache of an address holds. The excess is dropped with the next prompt. */
export function resize(state: WarmPrefixes, index: number, capacity: number): void {
  const address = state.addresses[index]
  if (address) address.capacity = capacity
}

/** What was sent to an address is no longer in its cache. */
export function forget(state: WarmPrefixes, index: number): void {
  const address = state.addresses[index]
  if (!address) return
  address.blocks.clear()
  address.held = 0
  address.surprises = 0
}

/**
 * An engine has answered and reports how many tokens of the prompt were cached. If repeatedly nothing is cached that
 * should have been, the engine was restarted. Returns whether the engine reports cached tokens at all.
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
  // What remains of a prompt is a prefix, so the last block can be found by binary search.
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
export function charactersOfBlocks({ ends }: Prompt, depth: number): number {
  return depth === 0 ? 0 : ends[depth - 1]!
}
