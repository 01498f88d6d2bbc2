import type { PromptBlock, PromptBlocks } from './prompt-blocks.ts'

/** Why most of a prompt was not in the cache of its engine. */
const missCauses = ['first_use', 'prefix_changed', 'evicted', 'moved'] as const
export type MissCause = (typeof missCauses)[number]

/** Where a prompt begins to differ from the previous one. */
export interface PrefixChange {
  /** The message with the difference; -1: in the tools. */
  readonly message: number
  /** They are equal up to here, in characters of the whole prompt. The difference is in the block that follows. */
  readonly afterCharacter: number
}

export type Miss =
  | { readonly cause: Exclude<MissCause, 'prefix_changed'> }
  | { readonly cause: 'prefix_changed'; readonly change: PrefixChange }

/** What was known about the cache of the engine, as shares of the prompt. */
interface Expectation {
  readonly here: number
  readonly anywhere: number
  readonly isTelling: boolean
}

/** With this share of a prompt in the cache, it is not a miss. */
const HIT_SHARE = 0.5
/** With this share of blocks in common, two prompts count as versions of one. */
const SIMILAR_SHARE = 0.5

/**
 * The likely cause of a miss; undefined: it was not a miss. `earlier` has the own hashes of the first blocks of an
 * earlier prompt by the same caller.
 */
export function missOf(
  prompt: PromptBlocks,
  earlier: readonly number[] | undefined,
  cachedShare: number,
  { here, anywhere, isTelling }: Expectation,
): Miss | undefined {
  if (cachedShare >= HIT_SHARE) return undefined
  // If an engine never reports cached tokens, a miss cannot be distinguished from a hit.
  if (here >= HIT_SHARE) return isTelling ? { cause: 'evicted' } : undefined
  if (anywhere >= HIT_SHARE) return { cause: 'moved' }
  const change = earlier && changeSince(earlier, prompt.blocks)
  return change ? { cause: 'prefix_changed', change } : { cause: 'first_use' }
}

function changeSince(earlier: readonly number[], blocks: readonly PromptBlock[]): PrefixChange | undefined {
  const compared = blocks.slice(0, earlier.length)
  const known = new Set(earlier)
  const common = compared.filter(({ own }) => known.has(own)).length
  if (common < compared.length * SIMILAR_SHARE) return undefined
  const index = compared.findIndex(({ own }, position) => own !== earlier[position])
  const first = blocks[index]
  return first && { message: first.message, afterCharacter: blocks[index - 1]?.end ?? 0 }
}
