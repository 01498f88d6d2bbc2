/**
 * A prompt cut into blocks, so that two prompts can be compared by how much of their beginning they share, without
 * keeping either. The hash of a block covers everything before it. Blocks end at fixed positions and at the ends of
 * messages: the blocks of one turn of a conversation are the first blocks of the next turn.
 */
export interface PromptBlocks {
  readonly blocks: readonly PromptBlock[]
  /** Of the whole prompt, including what comes after the last block. */
  readonly characters: number
  /** How many blocks the conversation began with: those before its first answer, which identify it in later turns. */
  readonly opening: number
  /** How many blocks the previous turn had: those before the last answer. 0: there was none. */
  readonly previous: number
}

export interface PromptBlock {
  /** Two halves of the hash of the prompt up to the end of the block. */
  readonly first: number
  readonly second: number
  /** The hash of the block by itself. */
  readonly own: number
  /** The characters of the prompt up to the end of the block. */
  readonly end: number
  /** The message in which the block begins; -1: before the messages, in the tools. */
  readonly message: number
}

/** The size of blocks at the beginning of a prompt. */
const BLOCK_CHARACTERS = 256
/** Further on, a block is at most this part of what precedes it, so that a long prompt has few blocks. */
const SHARE_OF_PROMPT = 64
/**
 * A message ends a block only if the block has reached this part of its size, so that many short messages have few
 * blocks.
 */
const SHARE_OF_BLOCK = 4
/** The size that an image counts for in a prompt. The length of its data URL says nothing about its tokens. */
const IMAGE_CHARACTERS = 1024

const FIRST_FACTOR = 0x9e3779b1
const SECOND_FACTOR = 0x85ebca77

/** An engine computes a shorter prompt faster than it is worth optimizing. */
export const MIN_PROMPT_CHARACTERS = 512

export interface PromptHasher {
  text(text: string): void
  /** The URL of an image. */
  image(url: string): void
  /** `isAnswer`: written by the model. What precedes it was the prompt of an earlier turn. */
  beginMessage(isAnswer: boolean): void
  endMessage(): void
  result(): PromptBlocks
}

export function promptHasher(): PromptHasher {
  const blocks: PromptBlock[] = []
  let first = 0
  let second = 0
  let message = -1
  let characters = 0
  let opening = 0
  let previous = 0
  /** The block that is not complete yet. */
  let start = 0
  let size = BLOCK_CHARACTERS
  let startedIn = -1
  let one = FIRST_FACTOR
  let other = SECOND_FACTOR

  function close(): void {
    const own = spread(one)
    first = spread(Math.imul(first, FIRST_FACTOR) ^ own)
    second = spread(Math.imul(second, SECOND_FACTOR) ^ other)
    blocks.push({ first, second, own, end: characters, message: startedIn })
    start = characters
    size = blockSize(characters)
    one = FIRST_FACTOR
    other = SECOND_FACTOR
    startedIn = message
  }

  function endOpening(): void {
    if (characters > start) close()
    opening = blocks.length
  }

  /** Hashes four characters at a time; both halves of the hash depend on all of them. */
  function mix(text: string, from: number, to: number): void {
    // Local variables in the loop are several times as fast.
    let left = one
    let right = other
    let index = from
    for (; index + 3 < to; index += 4) {
      const pair = text.charCodeAt(index) | (text.charCodeAt(index + 1) << 16)
      const next = text.charCodeAt(index + 2) | (text.charCodeAt(index + 3) << 16)
      left = Math.imul(((left << 5) | (left >>> 27)) ^ right ^ pair, FIRST_FACTOR)
      right = Math.imul(((right << 7) | (right >>> 25)) ^ left ^ next, SECOND_FACTOR)
    }
    for (; index < to; index++) {
      left = Math.imul(((left << 5) | (left >>> 27)) ^ right ^ text.charCodeAt(index), FIRST_FACTOR)
      right = Math.imul(((right << 7) | (right >>> 25)) ^ left, SECOND_FACTOR)
    }
    one = left
    other = right
  }

  return {
    text(text) {
      for (let index = 0; index < text.length;) {
        const end = Math.min(text.length, index + size - (characters - start))
        mix(text, index, end)
        characters += end - index
        index = end
        if (characters - start >= size) close()
      }
    },
    image(url) {
      mix(url, 0, url.length)
      characters += IMAGE_CHARACTERS
      if (characters - start >= size) close()
    },
    beginMessage(isAnswer) {
      message++
      if (isAnswer && opening === 0) endOpening()
      if (isAnswer) previous = blocks.length
      if (characters === start) startedIn = message
    },
    endMessage() {
      // Two texts that differ only in where a message ends are different prompts.
      one = Math.imul(one ^ 0x5bd1e995, FIRST_FACTOR)
      other = Math.imul(other ^ 0x5bd1e995, SECOND_FACTOR)
      if (characters - start >= size / SHARE_OF_BLOCK) close()
    },
    result() {
      if (opening === 0) endOpening()
      return { blocks, characters, opening, previous }
    },
  }
}

function blockSize(start: number): number {
  return Math.max(BLOCK_CHARACTERS, Math.floor(start / SHARE_OF_PROMPT))
}

/** Every bit of the result depends on every bit of the number (the finaliser of MurmurHash3). */
export function spread(number: number): number {
  let mixed = Math.imul(number ^ (number >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return (mixed ^ (mixed >>> 16)) >>> 0
}

/** A hash of a short text, such as a name. */
export function textHash(text: string): number {
  let hash = 0
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), FIRST_FACTOR)
  return spread(hash)
}
